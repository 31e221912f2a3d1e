package verdict

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// kindLatency is the Objective.Kind of a limit on a request's latency.
const kindLatency = "latency"

// minRounds is the least number of valid rounds that can carry a verdict: with fewer, a fluke of
// one of them can't be told from the step.
const minRounds = 3

// perRequest reports whether the objective is a share of requests, and so gets a verdict per step.
func (o Objective) perRequest() bool {
	return o.Kind == kindLatency || o.Kind == "success" || o.Kind == "timeouts"
}

// counts is one objective's pooled count in one step.
type counts struct {
	bad, total int64
	perRound   []RoundCount
	over       int // rounds over the allowance
	exact      *big.Rat
	allowance  float64
	phi        float64
	rule       rule
}

func (c counts) rounds() int { return len(c.perRound) }

// mostOver reports whether at least two thirds of the rounds are over the allowance.
func (c counts) mostOver() bool { return c.rounds() > 0 && 3*c.over >= 2*c.rounds() }

// fewOver reports whether the rounds over the allowance are few enough for an ok: none, or of the many
// short rounds of a search the few that chance puts there.
func (c counts) fewOver() bool { return c.over*c.rule.overOf <= c.rounds()*c.rule.over }

// apart reports whether it is only the difference between the rounds that keeps the count from deciding.
func (c counts) apart() bool {
	k, n := float64(c.bad), float64(c.total)
	return c.phi > 1 && (AtLeast(k, n, c.allowance) <= c.rule.alpha || AtMost(k, n, c.allowance) <= c.rule.alpha)
}

// extremes are the least and the greatest share of bad requests of a round.
func (c counts) extremes() (low, high float64) {
	low = 1
	for _, r := range c.perRound {
		share := float64(r.Bad) / float64(r.Total)
		low, high = math.Min(low, share), math.Max(high, share)
	}
	return low, high
}

// side compares the pooled share with the allowance, exactly: −1 below, 0 on it, 1 over.
func (c counts) side() int { return big.NewRat(c.bad, c.total).Cmp(c.exact) }

// allowance reads a target and returns 1 − target, exactly.
func allowance(target string) (*big.Rat, error) {
	t, ok := new(big.Rat).SetString(target)
	one := big.NewRat(1, 1)
	if !ok || t.Sign() <= 0 || t.Cmp(one) >= 0 {
		return nil, fmt.Errorf("the target %q is not a share between 0 and 1: correct it in the SLO file", target)
	}
	return one.Sub(one, t), nil
}

// judgeObjective counts one objective over the valid rounds of a step and tests it. The breach
// verdict is left to settle, which knows the other objectives of the step.
func judgeObjective(o Objective, missing string, rounds []Step, by rule) (ObjectiveResult, counts) {
	r := ObjectiveResult{Name: o.Name, Verdict: NoData, Dispersion: 1}
	exact, err := allowance(o.Target)
	if err != nil {
		r.Reason = err.Error()
		return r, counts{}
	}
	r.Allowance, _ = exact.Float64()
	c := counts{exact: exact, allowance: r.Allowance, phi: 1, rule: by}
	if missing != "" {
		r.Reason = missing
		return r, c
	}
	for _, s := range rounds {
		n := s.Counts[o.Name]
		r.Undefined += n.Undefined
		if n.Total <= 0 {
			continue
		}
		r.Slow += n.Slow
		r.Failed += n.Failed
		r.Total += n.Total
		bad := n.Slow + n.Failed
		over := big.NewRat(bad, n.Total).Cmp(exact) > 0
		if over {
			c.over++
		}
		c.perRound = append(c.perRound, RoundCount{s.Round, bad, n.Total, over})
	}
	r.Rounds, r.RoundsOver = c.perRound, c.over
	if r.Total == 0 {
		r.Reason = noCount(o, r.Undefined, len(rounds))
		return r, c
	}
	r.Good = r.Total - r.Bad()
	c.bad, c.total = r.Bad(), r.Total
	r.test(&c)
	return r, c
}

// test fills the statistics of the pooled count.
func (r *ObjectiveResult) test(c *counts) {
	var least float64
	if c.rule.atLimit {
		least = c.allowance * (1 - c.allowance)
	}
	c.phi = dispersion(c.perRound, least)
	k, n := float64(c.bad)/c.phi, float64(c.total)/c.phi
	r.Dispersion, r.EffectiveN = c.phi, n
	share := float64(c.bad) / float64(c.total)
	ci := ClopperPearson(k, n)
	ok, breach := AtMost(k, n, c.allowance), AtLeast(k, n, c.allowance)
	r.Share, r.CI, r.POK, r.PBreach = &share, &ci, &ok, &breach
}

// noCount says why an objective of a valid step counted nothing.
func noCount(o Objective, undefined int64, rounds int) string {
	switch {
	case rounds == 0:
		return "no valid round"
	case undefined > 0:
		return fmt.Sprintf("none of the %d ok requests has a %s: ask for more than one output token, and for a stream", undefined, words(o.Signal))
	default:
		return "no request was counted for it"
	}
}

// settle turns the tests of all objectives of a step into verdicts. The breach tests are
// corrected together, since the first of them to fire makes the claim; an ok claims nothing
// beyond its own objective.
func settle(results []ObjectiveResult, cs []counts) {
	var tested []int
	var ps []float64
	for i, r := range results {
		if r.PBreach != nil {
			tested = append(tested, i)
			ps = append(ps, *r.PBreach)
		}
	}
	for j, p := range Holm(ps) {
		i := tested[j]
		results[i].PBreachAdj = &p
		results[i].decide(cs[i], len(tested))
	}
}

// decide is the three-state rule over rounds.
func (r *ObjectiveResult) decide(c counts, family int) {
	zero := int64(0)
	enough := c.rounds() >= minRounds
	bound := meanBound(c.perRound, c.rounds(), c.rule.alpha)
	switch {
	case enough && *r.PBreachAdj <= c.rule.alpha && c.mostOver():
		r.Verdict, r.Needed = Breach, &zero
	case enough && *r.POK <= c.rule.alpha && c.fewOver() && bound <= c.allowance:
		r.Verdict, r.Needed = OK, &zero
	default:
		r.Verdict = Inconclusive
		r.Needed = c.needed(family)
		r.Reason = strings.Join(r.doubts(c, family, bound), "; ")
	}
}

// doubts says why an objective is inconclusive.
func (r *ObjectiveResult) doubts(c counts, family int, bound float64) []string {
	var why []string
	if c.rounds() < minRounds {
		why = append(why, fmt.Sprintf("%s, a verdict needs %d", count(int64(c.rounds()), "valid round"), minRounds))
	}
	switch {
	case *r.PBreachAdj <= c.rule.alpha:
		if !c.mostOver() {
			why = append(why, fmt.Sprintf("too many bad requests overall, but only %d of %d rounds over the allowance", c.over, c.rounds()))
		}
	case *r.PBreach <= c.rule.alpha:
		why = append(why, fmt.Sprintf("a breach by itself (p = %.3g), but not among %d objectives asked together (p = %.3g)", *r.PBreach, family, *r.PBreachAdj))
	case *r.POK <= c.rule.alpha:
		if !c.fewOver() {
			why = append(why, fmt.Sprintf("held overall, but %d of %d rounds over the allowance of %s", c.over, c.rounds(), percent(c.allowance)))
		} else if bound > c.allowance {
			why = append(why, fmt.Sprintf("held overall, but the rounds differ so much that their mean may reach %s, over the allowance of %s", percent(bound), percent(c.allowance)))
		}
	case c.apart():
		low, high := c.extremes()
		why = append(why, fmt.Sprintf("the rounds differ too much to tell: from %s to %s bad, against an allowance of %s", percent(low), percent(high), percent(c.allowance)))
	default:
		why = append(why, fmt.Sprintf("%d of %d bad is too near the allowance of %s to tell", c.bad, c.total, percent(c.allowance)))
	}
	if len(why) == 0 {
		why = append(why, "not decided")
	}
	return why
}

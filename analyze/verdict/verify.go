package verdict

import (
	"fmt"
	"strings"

	"firstbreach/internal/figures"
)

// refusalTime is how quickly a refusal should come, in seconds.
const refusalTime = 0.1

// Verification is what became of a load behind the admission limits: twice the throughput of the first
// breach, as users who don't wait for each other, and then the baseline's load.
type Verification struct {
	Verdict  State // held, not_held, undecided
	Reasons  []string
	Rate     float64 // requests due in a second
	Accepted int64
	Refused  int64
	// Expected is the share that had to be refused: what was offered over what the service did at best.
	Expected   *float64
	Objectives []VerifiedObjective // over the accepted requests
	Refusal    *Refusals           // how fast the others were refused; nil without any
	After      State               // recovered, degraded, inconclusive: the baseline's load through the same proxy
}

// VerifiedObjective is one objective over the requests that were let in.
type VerifiedObjective struct {
	Name       string
	Verdict    State // ok, breach, inconclusive: one round, by the exact test
	Bad, Total int64
	CI         *[2]float64
}

// Refusals are the times that refusals took.
type Refusals struct {
	Count  int64
	Mean   float64 // seconds
	Within int64   // in at most 100 ms
}

// verify judges the verification, if there is one.
func (r *Result) verify(run Run, missing map[string]string) {
	var load, after *Step
	for i := range run.Steps {
		switch s := &run.Steps[i]; {
		case s.Phase == PhaseVerify && s.Rate > 0:
			load = s
		case s.Phase == PhaseVerify:
			after = s
		}
	}
	if load == nil {
		return
	}
	v := &Verification{Rate: load.Rate, Refused: load.Outcomes["rejected"], Accepted: measuredOf(*load).Requests - load.Outcomes["rejected"], Refusal: load.Refusals}
	r.Verification = v
	if offered := v.Accepted + v.Refused; offered > 0 && r.FirstBreach != nil {
		if at := r.At(PhaseRamp, r.FirstBreach.Level()); at != nil && at.Measured.RequestsPerSecond != nil {
			share := max(0, 1-*at.Measured.RequestsPerSecond/load.Rate)
			v.Expected = &share
		}
	}
	if void := judgeRound(run, *load); !void.Valid {
		v.Verdict, v.Reasons = Undecided, void.Void()
		return
	}
	states := map[State]bool{}
	for _, o := range run.Objectives {
		if !o.perRequest() || missing[o.Name] != "" {
			continue
		}
		x := verified(o, load.Counts[o.Name], v.Refused)
		states[x.Verdict] = true
		v.Objectives = append(v.Objectives, x)
	}
	v.After = r.verifiedAfter(run, after, missing)
	v.conclude(states)
}

// verified tests one objective over the accepted requests: those refused are in no count of it.
func verified(o Objective, c Count, refused int64) VerifiedObjective {
	x := VerifiedObjective{Name: o.Name, Verdict: Inconclusive}
	refusedOf := refused
	if o.Kind == "timeouts" {
		refusedOf = 0 // they are no timeouts, but they are in the total
	}
	x.Bad, x.Total = c.Slow+c.Failed-refusedOf, c.Total-refused
	exact, err := allowance(o.Target)
	if err != nil || x.Total <= 0 || x.Bad < 0 {
		return x
	}
	a, _ := exact.Float64()
	k, n := float64(x.Bad), float64(x.Total)
	ci := ClopperPearson(k, n)
	x.CI = &ci
	switch {
	case AtMost(k, n, a) <= Alpha:
		x.Verdict = OK
	case AtLeast(k, n, a) <= Alpha:
		x.Verdict = Breach
	}
	return x
}

// verifiedAfter says whether the baseline's load keeps its objectives after the verification.
func (r *Result) verifiedAfter(run Run, after *Step, missing map[string]string) State {
	if after == nil || !judgeRound(run, *after).Valid {
		return Inconclusive
	}
	state := Recovered
	for _, o := range run.Objectives {
		if !o.perRequest() || missing[o.Name] != "" {
			continue
		}
		switch verified(o, after.Counts[o.Name], 0).Verdict {
		case Breach:
			return Degraded
		case Inconclusive:
			state = Inconclusive
		}
	}
	return state
}

func (v *Verification) conclude(states map[State]bool) {
	slow := v.Refusal != nil && v.Refusal.Within*20 < v.Refusal.Count*19
	for _, o := range v.Objectives {
		if o.Verdict != OK {
			v.Reasons = append(v.Reasons, fmt.Sprintf("%s of the accepted requests is %s (%d of %d missed)", o.Name, words(string(o.Verdict)), o.Bad, o.Total))
		}
	}
	if slow {
		v.Reasons = append(v.Reasons, fmt.Sprintf("only %d of %d refusals came within %g ms", v.Refusal.Within, v.Refusal.Count, 1000*refusalTime))
	}
	if v.After != Recovered {
		v.Reasons = append(v.Reasons, "afterwards: "+words(string(v.After)))
	}
	switch {
	case states[Breach] || slow || v.After == Degraded:
		v.Verdict = NotHeld
	case states[Inconclusive] || v.After != Recovered || len(v.Objectives) == 0:
		v.Verdict = Undecided
	default:
		v.Verdict = Held
	}
}

// Words is the verification in one sentence.
func (v Verification) Words() string {
	s := fmt.Sprintf("At %s requests a second behind these limits %d were accepted and %d refused", figures.Write(v.Rate, 3), v.Accepted, v.Refused)
	if n := v.Accepted + v.Refused; n > 0 {
		s += fmt.Sprintf(" (%s", percent(float64(v.Refused)/float64(n)))
		if v.Expected != nil {
			s += fmt.Sprintf("; %s had to be", percent(*v.Expected))
		}
		s += ")"
	}
	if v.Refusal != nil && v.Refusal.Count > 0 {
		s += fmt.Sprintf(", in %s ms on average, %d of %d within %g ms", figures.Write(1000*v.Refusal.Mean, 3), v.Refusal.Within, v.Refusal.Count, 1000*refusalTime)
	}
	s += ". "
	switch v.Verdict {
	case Held:
		s += "The accepted requests kept every objective, and the service was at its baseline afterwards."
	case NotHeld:
		s += "The limits did not hold: " + strings.Join(v.Reasons, "; ") + "."
	default:
		s += "Whether the limits hold is undecided: " + strings.Join(v.Reasons, "; ") + "."
	}
	return s
}

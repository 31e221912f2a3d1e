package plan

import (
	"fmt"
	"math"
	"time"

	"firstbreach/internal/slo"
)

// MinRounds is the least number of rounds with which a verdict can be decided: a step counts as
// broken or kept only when rounds agree.
const MinRounds = 3

// Need says whether a plan measures enough requests to decide one objective.
type Need struct {
	Objective string // its name
	Target    string // "95%"
	Requests  int    // measured requests at one level, none of them bad, that show that it is kept
	Planned   int    // measured requests at one level over all rounds; 0 where the plan fixes a time instead
	Enough    bool   // Planned ≥ Requests; false where Planned is unknown
	Sentence  string // for people: what is needed, what is planned, what to change
}

// Preflight says for each per-request objective how many requests a decision needs and whether the
// plan gives them. It is the least number: an objective with bad requests among them needs more.
func Preflight(p *Plan, f *slo.File) []Need {
	var needs []Need
	for _, o := range f.PerRequest() {
		n := Need{Objective: o.Name, Target: o.Target.Text(), Requests: requestsToShow(o.Target.Float()), Planned: p.Rounds * p.Step.Requests}
		n.Enough = n.Planned >= n.Requests
		n.Sentence = n.sentence(p)
		needs = append(needs, n)
	}
	return needs
}

// requestsToShow is the smallest n for which n good requests out of n show, with 95 % confidence,
// that the share of good ones is at least target: target^n ≤ 0.05 (the exact binomial bound of Clopper
// and Pearson, 1934, with no misses).
func requestsToShow(target float64) int {
	return int(math.Ceil(math.Log(0.05) / math.Log(target)))
}

func (n Need) sentence(p *Plan) string {
	head := fmt.Sprintf("%s (%s): %d requests without a miss decide it", n.Objective, n.Target, n.Requests)
	switch {
	case p.Step.Requests == 0:
		return fmt.Sprintf("%s; steps of %v measure as many as the target answers: make sure that %s of a level reach %d, or write step: {requests: %d}",
			head, p.Step.Duration, count(p.Rounds, "round"), n.Requests, perRound(n.Requests, p.Rounds))
	case n.Enough:
		return fmt.Sprintf("%s, the plan measures %s x %d = %d at each level: enough", head, count(p.Rounds, "round"), p.Step.Requests, n.Planned)
	}
	return fmt.Sprintf("%s, the plan measures %s x %d = %d at each level: not enough; set step.requests to %d",
		head, count(p.Rounds, "round"), p.Step.Requests, n.Planned, perRound(n.Requests, p.Rounds))
}

func perRound(requests, rounds int) int { return (requests + rounds - 1) / max(rounds, 1) }

// Warnings says what the plan allows but can't recommend, in sentences.
func (p *Plan) Warnings() []string {
	var w []string
	if p.Rounds < MinRounds {
		w = append(w, fmt.Sprintf("rounds: %d: no verdict can be decided with fewer than %d rounds; every level will be inconclusive (set rounds: %d)", p.Rounds, MinRounds, MinRounds))
	}
	if p.Target.TLS.InsecureSkipVerify {
		w = append(w, "target.tls.insecure_skip_verify: the target's certificate is not checked: anybody on the way can read the API key and answer in its place (name its CA with ca_file)")
	}
	if p.Fixed.IgnoreEOS && (p.Target.API == OllamaChat || p.Target.API == OllamaGenerate) {
		w = append(w, fmt.Sprintf("fixed.ignore_eos: %s has nothing to hold the length of an answer with: answers may be shorter than %d tokens (the ledger has each one's output_tokens)", p.Target.API, p.Fixed.OutputTokens))
	}
	if p.Fixed.OutputTokens == 1 {
		w = append(w, "fixed.output_tokens: 1: time per output token is undefined for answers of one token (set at least 2)")
	}
	if p.Timeouts.FirstToken > p.Timeouts.Total {
		w = append(w, fmt.Sprintf("timeouts.first_token: %v is longer than timeouts.total %v, which will always pass first", p.Timeouts.FirstToken, p.Timeouts.Total))
	}
	if p.Timeouts.Idle > p.Timeouts.Total {
		w = append(w, fmt.Sprintf("timeouts.idle: %v is longer than timeouts.total %v, which will always pass first", p.Timeouts.Idle, p.Timeouts.Total))
	}
	if p.Step.Requests > 0 && p.Stop != (Stop{After: p.Stop.After}) && p.Stop.After > p.Step.Requests {
		w = append(w, fmt.Sprintf("stop.after: %d is more than the %d requests of a step, so it can never stop one", p.Stop.After, p.Step.Requests))
	}
	for _, l := range []struct {
		key             string
		limit, deadline time.Duration
	}{{"ttft_p95", p.Stop.TTFTP95, p.Timeouts.FirstToken}, {"e2e_p95", p.Stop.E2EP95, p.Timeouts.Total}} {
		if l.limit >= l.deadline {
			w = append(w, fmt.Sprintf("stop.%s: no answer takes more than %v, because the deadline of a request is %v (set it lower)", l.key, l.limit, l.deadline))
		}
	}
	return w
}

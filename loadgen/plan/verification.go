package plan

// PhaseVerify is the try of admission limits, after everything else. No plan file has it: whoever runs
// the plan adds it, once the limits are known.
const PhaseVerify Phase = "verify"

// Verification is a load sent through an admission proxy, and after it the baseline's through the same.
type Verification struct {
	URL         string // of the proxy
	Rate        float64
	MaxInFlight int
	Step        Step
}

// Through is the plan with a verification, sent to the proxy in place of the target.
func (p *Plan) Through(v Verification) *Plan {
	out := *p
	out.Target.URL = v.URL
	out.Verification = &v
	return &out
}

// VerifyStages are the two steps of a verification: the load, and what comes after it.
func (p *Plan) VerifyStages() []Stage {
	return []Stage{
		{Phase: PhaseVerify, Round: 1, Step: 1, Rate: p.Verification.Rate},
		{Phase: PhaseVerify, Round: 1, Step: 2, Concurrency: p.Recovery.Concurrency},
	}
}

package plan

import (
	"strconv"
	"time"

	"firstbreach/internal/strictyaml"
)

// Effective are the values that hold for the keys of a plan that have a default, by their place in the file such as
// "timeouts.total": two plans of which one writes out a default and the other doesn't have the same. It reads the
// text alone, so the files that the plan names need not be there any more.
func Effective(src []byte) (map[string]string, error) {
	doc, err := strictyaml.Parse("", src)
	if err != nil {
		return nil, err
	}
	p := Defaults()
	r := reader{plan: &p, doc: doc}
	m := doc.Root().Map(topKeys...)
	if text, ok := m.Get("environment").Text(); ok {
		p.Environment = Environment(text)
	}
	r.decoding(m.Get("fixed").Map(fixedKeys...))
	if ramp := m.Get("ramp"); ramp.Present() {
		r.ramp(ramp)
	}
	r.settings(m)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return p.effective(), nil
}

func (p *Plan) effective() map[string]string {
	out := map[string]string{
		"apiVersion":           p.APIVersion,
		"fixed.ignore_eos":     strconv.FormatBool(p.Fixed.IgnoreEOS),
		"fixed.context_length": strconv.Itoa(p.Fixed.ContextLength),
		"fixed.temperature":    strconv.FormatFloat(p.Fixed.Temperature, 'g', -1, 64),
		"fixed.seed":           strconv.FormatInt(p.Fixed.Seed, 10),
		"baseline.concurrency": strconv.Itoa(p.Baseline.Concurrency),
		"recovery.concurrency": strconv.Itoa(p.Recovery.Concurrency),
		"stop.error_ratio":     strconv.FormatFloat(p.Stop.ErrorRatio, 'g', -1, 64),
		"stop.after":           strconv.Itoa(p.Stop.After),
	}
	if len(p.Ramp.Rate) > 0 {
		out["ramp.arrivals"], out["ramp.max_in_flight"] = string(p.Ramp.Arrivals), strconv.Itoa(p.Ramp.MaxInFlight)
	}
	durations := map[string]time.Duration{
		"cooldown":             p.Cooldown,
		"timeouts.connect":     p.Timeouts.Connect,
		"timeouts.first_token": p.Timeouts.FirstToken,
		"timeouts.idle":        p.Timeouts.Idle,
		"timeouts.total":       p.Timeouts.Total,
		"stop.ttft_p95":        p.Stop.TTFTP95,
		"stop.e2e_p95":         p.Stop.E2EP95,
	}
	if p.Step.Duration > 0 {
		durations["step.duration"] = p.Step.Duration
	} else {
		out["step.requests"] = strconv.Itoa(p.Step.Requests)
		durations["step.min_duration"], durations["step.max_duration"] = p.Step.MinDuration, p.Step.MaxDuration
	}
	for key, d := range durations {
		out[key] = d.String()
	}
	return out
}

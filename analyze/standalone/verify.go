package standalone

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"firstbreach/analyze/admission"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/figures"
	"firstbreach/loadgen/plan"
)

// How a verification is offered: so many times the throughput of the first breach, for a time in which
// enough requests are accepted to judge a P95 by.
const (
	verifyFactor = 2.0
	verifyLeast  = 15 * time.Second
	verifyMost   = 3 * time.Minute
)

// verifyLimits tries the limits that follow from the run so far.
func (j *job) verifyLimits(ctx context.Context) error {
	if err := j.runner.Settle(ctx); err != nil {
		return err
	}
	_, res, err := j.analyse(ctx)
	if err != nil {
		return fmt.Errorf("work out the limits to try: %w", err)
	}
	v, limits, why := verification(res, j.plan)
	if why != "" {
		fmt.Fprintf(j.Out, "\nThe limits are not tried: %s.\n", why)
		return nil
	}
	proxy, err := admission.New(j.plan.Target.URL, limits)
	if err != nil {
		return err
	}
	l, err := listen(ctx, "", "the admission proxy")
	if err != nil {
		return err
	}
	front := serve(l, proxy)
	v.URL = front.url
	fmt.Fprintf(j.Out, "\nTrying the limits: at most %d at once, %d waiting for at most %s; %s requests a second for %s, and then the baseline's load.\n",
		limits.MaxConcurrency, limits.QueueCap, limits.QueueTimeout.Round(time.Millisecond), figures.Write(v.Rate, 3), v.Step.Duration.Round(time.Second))
	return errors.Join(j.runner.Verify(ctx, v), front.stop())
}

// verification is what to offer behind which limits, or why there is nothing to try.
func verification(res verdict.Result, p *plan.Plan) (v plan.Verification, l admission.Limits, why string) {
	switch {
	case res.FirstBreach == nil:
		return v, l, "there is no first breach, so nothing to keep away from the service"
	case res.Limits == nil:
		return v, l, "no limits follow from this run"
	case !res.Limits.Applies:
		return v, l, res.Limits.Reason
	}
	at := res.At(verdict.PhaseRamp, res.FirstBreach.Level())
	if at == nil || at.Measured.RequestsPerSecond == nil || *at.Measured.RequestsPerSecond <= 0 {
		return v, l, "no request was answered at the first breach, so its throughput is not known"
	}
	v.Rate = threeDigits(verifyFactor * *at.Measured.RequestsPerSecond)
	l = admission.Limits{MaxConcurrency: res.Limits.MaxConcurrency, QueueCap: res.Limits.QueueCap,
		QueueTimeout: time.Duration(res.Limits.QueueTimeout * float64(time.Second)), RetryAfter: time.Duration(res.Limits.RetryAfter * float64(time.Second))}
	v.MaxInFlight = 4*(l.MaxConcurrency+l.QueueCap) + 16 // refused at once, so few are under way
	accepted := float64(3*max(p.Step.Requests, 60)) / (v.Rate / verifyFactor)
	v.Step = plan.Step{Duration: min(max(time.Duration(accepted*float64(time.Second)), verifyLeast), verifyMost)}
	return v, l, ""
}

// threeDigits rounds a rate to what people read.
func threeDigits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}

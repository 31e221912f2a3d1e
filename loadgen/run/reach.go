package run

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/wire"
)

// reachTime bounds the one request before a run; reachTraceTime that of a trace, which may be long: what
// a server complains of it says at once.
const (
	reachTime      = 15 * time.Second
	reachTraceTime = 3 * time.Second
)

// Reach sends the target one request of the plan and returns an error, with what to change, when its
// answer shows that no other would fare better: nothing listens there, it is no such server, it doesn't know
// the model or the key. Every step would fail then, which would read like a breach at the lowest load.
//
// Of a trace the longest request is sent as well, because it may be longer than the model's context.
//
// Whatever takes longer than reachTime, such as loading the model first, is not waited for. Whatever load may be to blame for, a refusal, a timeout, an error of the server, is left to be measured.
func Reach(ctx context.Context, p *plan.Plan, runID string) error {
	t, err := NewTarget(p, runID)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := reach(ctx, p, t, plan.Stage{Phase: plan.PhaseBaseline}, 0, reachTime); err != nil || p.Trace == nil {
		return err
	}
	return reach(ctx, p, t, plan.Stage{Phase: plan.PhaseTrace, Round: 1, Step: 1}, p.Trace.Longest(), reachTraceTime)
}

// reach sends one request and looks at its answer.
func reach(ctx context.Context, p *plan.Plan, t Target, s plan.Stage, n int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res := t.Do(ctx, t.Body(s, n))
	fix := hopeless(res)
	if fix == "" || ctx.Err() != nil {
		return nil
	}
	what := "a single request"
	if s.Phase == plan.PhaseTrace {
		what = fmt.Sprintf("the longest request of the trace (%d input and %d output tokens)", p.Trace.Requests[n].Input, p.Trace.Requests[n].Output)
		if res.Outcome == wire.ClientError {
			fix = "write trace.max_input_tokens and trace.max_output_tokens where the model's context is shorter, and trace.ignore_eos: false for a server that doesn't know it"
		}
	}
	return fmt.Errorf("target %s fails %s, so nothing was started: %s (fix: %s)", p.Target.URL, what, res.Error, fix)
}

// hopeless says what to do about an answer that load has nothing to do with; "" for any other.
func hopeless(r wire.Result) (fix string) {
	switch {
	case r.Outcome == wire.Transport && strings.Contains(r.Error, "certificate"):
		return "have it show a certificate that this machine trusts, or name its authority's in the variable SSL_CERT_FILE"
	case r.Outcome == wire.Transport && r.HTTPStatus == 0 && r.Header == nil,
		r.Outcome == wire.Timeout && r.TimeoutKind == wire.TimeoutConnect:
		return "check that it runs, and that scheme, host and port of its address are right (--target, or target.url of the plan)"
	case r.Outcome == wire.Loading:
		return "wait until it has loaded its model, then start again"
	case r.HTTPStatus == http.StatusUnauthorized || r.HTTPStatus == http.StatusForbidden:
		return "give it a key: --api-key-env or --api-key-file, or target.api_key of the plan"
	case r.HTTPStatus == http.StatusNotFound || r.HTTPStatus == http.StatusMethodNotAllowed || r.HTTPStatus == http.StatusNotImplemented:
		return "check the model's name (--model, target.model), what the server speaks (--api, target.api), and that the address has no path of its own but /v1"
	case r.Outcome == wire.ClientError:
		return "change what it complains of: model, output_tokens, context_length or temperature of the plan, or --api"
	case r.Outcome == wire.Protocol:
		return "check what the server speaks (--api, target.api), and that the address is that of the model server"
	}
	return ""
}

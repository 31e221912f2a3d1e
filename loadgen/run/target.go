package run

import (
	"context"
	"fmt"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/wire"
)

// wireTarget is the plan's target: the client, the dialect that builds bodies, and the prompts.
type wireTarget struct {
	client  *wire.Client
	dialect wire.Dialect
	prompts *plan.PromptSet
	trace   *plan.TracePrompts // nil: the plan has none
	holds   bool               // the trace's answers go on to their length
	sha256  string
	ask     wire.Request // but for the prompt
}

// NewTarget makes the client for a plan's target and reads its prompts and its key. It sends
// nothing.
func NewTarget(p *plan.Plan, runID string) (Target, error) {
	dialect, err := wire.ByName(p.Target.API)
	if err != nil {
		return nil, fmt.Errorf("target.api: %w", err)
	}
	prompts, err := p.Fixed.Prompts.Open(p.Fixed.Seed, runID)
	if err != nil {
		return nil, err
	}
	key, err := p.Target.APIKey.Value()
	if err != nil {
		return nil, err
	}
	secure, err := p.Target.TLS.Config()
	if err != nil {
		return nil, err
	}
	client, err := wire.NewClient(wire.Options{
		TLS: secure, Proxy: p.Target.ProxyFunc(),
		BaseURL: p.Target.URL, API: p.Target.API, APIKey: key, Headers: p.Target.Headers,
		Timeouts:       wire.Timeouts(p.Timeouts),
		MaxConnections: highest(p),
	})
	if err != nil {
		return nil, err
	}
	t := &wireTarget{
		client: client, dialect: dialect, prompts: prompts, sha256: prompts.SHA256(),
		ask: wire.Request{
			Model: p.Target.Model, OutputTokens: p.Fixed.OutputTokens, ContextLength: p.Fixed.ContextLength,
			Temperature: p.Fixed.Temperature, Seed: p.Fixed.Seed, Priority: p.Fixed.Priority,
			IgnoreEOS: p.Fixed.IgnoreEOS,
		},
	}
	if p.Trace != nil {
		t.trace, t.holds = p.Trace.Prompts(p.Fixed.Seed, runID), p.Trace.IgnoreEOS
	}
	return t, nil
}

// highest is the greatest number of requests that a plan may have in flight.
func highest(p *plan.Plan) int {
	most := 0
	if p.Verification != nil {
		most = p.Verification.MaxInFlight
	}
	for _, s := range p.Stages(1) {
		most = max(most, s.Concurrency)
		if s.Rate > 0 {
			most = max(most, p.Ramp.MaxInFlight)
		}
	}
	for _, s := range p.After() {
		most = max(most, s.Concurrency, p.Held(s).MaxInFlight)
	}
	return most
}

// Do implements drive.Sender.
func (t *wireTarget) Do(ctx context.Context, body []byte) wire.Result { return t.client.Do(ctx, body) }

// Reads says how the chunks of all answers so far were read.
func (t *wireTarget) Reads() wire.Reads { return t.client.Reads() }

// Body implements Target.
func (t *wireTarget) Body(s plan.Stage, n int) []byte {
	ask := t.ask
	if s.Phase == plan.PhaseTrace {
		ask.Prompt, ask.OutputTokens, ask.IgnoreEOS = t.trace.Prompt(n), t.trace.OutputTokens(n), t.holds
		return t.dialect.Body(ask)
	}
	ask.Prompt = t.prompts.Prompt(s.Phase, s.Round, s.Step, n)
	for _, turn := range t.prompts.Conversation(s.Phase, s.Round, s.Step, n) {
		ask.Messages = append(ask.Messages, wire.Message(turn))
	}
	if tokens := t.prompts.OutputTokens(n); tokens > 0 {
		ask.OutputTokens = tokens
	}
	return t.dialect.Body(ask)
}

// PromptsSHA256 implements Target.
func (t *wireTarget) PromptsSHA256() string { return t.sha256 }

// Close implements Target.
func (t *wireTarget) Close() { t.client.CloseIdle() }

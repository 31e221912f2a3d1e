package report

import (
	"fmt"
	"math"

	"firstbreach/analyze/verdict"
)

// Limits are what admission control should be given.
type Limits struct {
	Reason         string    `json:"reason,omitempty"` // why there are none
	MaxConcurrency int       `json:"max_concurrency"`
	QueueCap       int       `json:"queue_cap"`
	QueueTimeout   float64   `json:"queue_timeout"`
	RetryAfter     float64   `json:"retry_after"`
	LowPriority    int       `json:"low_priority"`
	List           []Limit   `json:"list"`
	Snippets       []Snippet `json:"snippets"`
}

// Limit is one of them, with where it comes from.
type Limit struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	From   string `json:"from"` // measured, modelled, inferred
	Inputs string `json:"inputs"`
}

// Snippet is a piece of configuration, with what its knobs don't do.
type Snippet struct {
	For  string `json:"for"`
	Text string `json:"text"`
	Note string `json:"note"`
}

func limits(l *verdict.Limits) *Limits {
	if l == nil {
		return nil
	}
	out := &Limits{Reason: l.Reason, MaxConcurrency: l.MaxConcurrency, QueueCap: l.QueueCap, QueueTimeout: round(l.QueueTimeout),
		RetryAfter: l.RetryAfter, LowPriority: l.LowPriority, List: []Limit{}, Snippets: []Snippet{}}
	for _, x := range l.List {
		out.List = append(out.List, Limit(x))
	}
	if l.Applies {
		out.Snippets = snippets(*l)
	}
	return out
}

// snippets are ready for use, but for names and addresses.
func snippets(l verdict.Limits) []Snippet {
	c, q := l.MaxConcurrency, l.QueueCap
	retry := int(math.Max(1, l.RetryAfter))
	return []Snippet{
		{"vLLM", fmt.Sprintf("vllm serve MODEL --max-num-seqs %d --max-num-queued-reqs %d", c, q),
			"--max-num-seqs bounds what runs at once and not the queue, which has no bound without --max-num-queued-reqs (vLLM 0.32; older ones need a gateway). A refusal is a 503 without Retry-After."},
		{"Ollama", fmt.Sprintf("OLLAMA_NUM_PARALLEL=%d ollama serve", c),
			"OLLAMA_MAX_QUEUE does not bound the queue of a loaded model, only that of loading one: requests beyond OLLAMA_NUM_PARALLEL wait without limit, so the queue cap must be in a gateway. The KV cache takes memory for each parallel request."},
		{"nginx", fmt.Sprintf(`limit_conn_zone $server_name zone=llm:1m;
upstream llm { zone llm 64k; server 127.0.0.1:8000 max_conns=%d; }
server {
  limit_conn llm %d;
  limit_conn_status 503;
  error_page 503 @busy;
  location / { proxy_pass http://llm; proxy_buffering off; }
  location @busy { add_header Retry-After %d always; return 503; }
}`, c+q, c+q, retry),
			fmt.Sprintf("limit_conn counts requests in progress, those that wait in the engine among them: %d running and %d waiting. The queue itself is the engine's, since open-source nginx has none: set the engine to %d. limit_req is a limit of rate, not of concurrency. max_conns counts for all workers only with a zone.", c, q, c)},
		{"Envoy", fmt.Sprintf(`circuit_breakers:
  thresholds:
  - priority: DEFAULT
    max_connections: %d
    max_pending_requests: %d
    max_requests: %d`, c, max(q, 1), c),
			"For an HTTP/1.1 upstream max_connections is the concurrency and max_pending_requests the queue before it. To an HTTP/2 upstream requests don't wait for a connection: what is over max_requests is refused at once, and there is no queue. Each Envoy counts by itself."},
		{"LiteLLM", fmt.Sprintf(`model_list:
- model_name: MODEL
  litellm_params:
    model: openai/MODEL
    api_base: http://127.0.0.1:8000/v1
    max_parallel_requests: %d`, c),
			"max_parallel_requests of a deployment makes requests wait, in each process by itself: it moves the queue and does not bound it. max_parallel_requests of a key refuses with 429 at once: give keys of a low-priority class that one."},
	}
}

// limitTable lists the limits.
func (d *Document) limitTable() table {
	t := table{Head: []string{"limit", "value", "from", "inputs"}}
	if d.Limits == nil {
		return t
	}
	for _, l := range d.Limits.List {
		t.row(text(l.Name), text(l.Value), text(l.From), text(l.Inputs))
	}
	if len(t.Rows) > 0 {
		t.note("A closed loop tests no bursts: under demand that does not wait, these limits are modelled until they are tried (standalone --verify-limits).")
	}
	return t
}

// Verified is what became of a load behind the limits.
type Verified struct {
	Verdict    verdict.State       `json:"verdict"` // held, not_held, undecided
	Text       string              `json:"text"`
	Rate       float64             `json:"rate"`
	Accepted   int64               `json:"accepted"`
	Refused    int64               `json:"refused"`
	Expected   *float64            `json:"refused_share_expected"`
	Refusal    *float64            `json:"refusal_mean"` // seconds
	Within     int64               `json:"refused_within_100ms"`
	Objectives []VerifiedObjective `json:"objectives"` // over the accepted requests
	After      verdict.State       `json:"after"`      // recovered, degraded, inconclusive
}

// VerifiedObjective is one objective over the accepted requests.
type VerifiedObjective struct {
	Name    string        `json:"name"`
	Verdict verdict.State `json:"verdict"`
	Bad     int64         `json:"bad"`
	Total   int64         `json:"total"`
	CI      *[2]float64   `json:"ci"`
}

func verified(v *verdict.Verification) *Verified {
	if v == nil {
		return nil
	}
	out := &Verified{Verdict: v.Verdict, Text: v.Words(), Rate: round(v.Rate), Accepted: v.Accepted, Refused: v.Refused, Expected: number(v.Expected),
		Objectives: []VerifiedObjective{}, After: v.After}
	if v.Refusal != nil {
		out.Refusal, out.Within = number(&v.Refusal.Mean), v.Refusal.Within
	}
	for _, o := range v.Objectives {
		out.Objectives = append(out.Objectives, VerifiedObjective{o.Name, o.Verdict, o.Bad, o.Total, pair(o.CI)})
	}
	return out
}

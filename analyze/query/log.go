package query

import "time"

// Log is every query that a run was read with, in a fixed order, so that each number can be
// traced to what was asked.
type Log struct {
	Queries []Query `json:"queries"`
}

// Kind says which part of the HTTP API a query went to.
type Kind string

// The kinds of query.
const (
	Instant     Kind = "instant"
	Ranged      Kind = "range"
	LabelValues Kind = "label_values"
)

// Query is one query and what came back, but for the values. How long it took is left out: it
// would differ each time.
type Query struct {
	Name  string    `json:"name"` // what was asked for, in words
	Kind  Kind      `json:"kind"`
	Expr  string    `json:"expr"`            // of label values: the selector
	Label string    `json:"label,omitempty"` // of label values
	At    time.Time `json:"at,omitzero"`     // of an instant query; zero for the server's own time
	From  time.Time `json:"from,omitzero"`
	To    time.Time `json:"to,omitzero"`
	StepS float64   `json:"step_s,omitempty"` // of a range query, seconds
	// LookbackS is how long a sample counted in a range query, seconds; 0: as the server is set.
	LookbackS float64  `json:"lookback_s,omitempty"`
	Type      string   `json:"type"` // of the result: vector, matrix, scalar, values
	Series    int      `json:"series"`
	Samples   int      `json:"samples"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
	Error     string   `json:"error,omitempty"` // a refusal that left one reading without data
}

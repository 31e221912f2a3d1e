package wire

import "time"

// Outcome is how one request ended. Every request has exactly one.
type Outcome string

// The outcomes, in the order in which they are exposed.
const (
	OK          Outcome = "ok"           // status 200, a terminal marker on every choice, no error anywhere
	Rejected    Outcome = "rejected"     // refused for load: 429, 503, 529, or the same said in band
	Loading     Outcome = "loading"      // the model is still being loaded
	ClientError Outcome = "client_error" // other 4xx, redirects
	ServerError Outcome = "server_error" // 5xx, an error in the stream, finish reason abort or error
	Truncated   Outcome = "truncated"    // the stream ended cleanly without a terminal marker
	Transport   Outcome = "transport"    // refused, reset, unexpected EOF, TLS
	Timeout     Outcome = "timeout"      // one of the deadlines passed; see TimeoutKind
	Protocol    Outcome = "protocol"     // not SSE or NDJSON, or broken JSON
	Dropped     Outcome = "dropped"      // was due, never sent
	Aborted     Outcome = "aborted"      // ended by us: Ctrl-C or a stop; counts in no ratio
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{OK, Rejected, Loading, ClientError, ServerError, Truncated, Transport, Timeout, Protocol, Dropped, Aborted}
}

// Failed reports whether the outcome counts as a failed request: all but ok and aborted.
func (o Outcome) Failed() bool { return o != OK && o != Aborted }

// TimeoutKind says which deadline passed.
type TimeoutKind string

// The deadlines of a request.
const (
	TimeoutConnect    TimeoutKind = "connect"
	TimeoutHeader     TimeoutKind = "header"      // the first-token deadline passed before response headers
	TimeoutFirstToken TimeoutKind = "first_token" // it passed after them
	TimeoutIdle       TimeoutKind = "idle"
	TimeoutTotal      TimeoutKind = "total"
)

// TimeoutKinds lists every kind of timeout.
func TimeoutKinds() []TimeoutKind {
	return []TimeoutKind{TimeoutConnect, TimeoutHeader, TimeoutFirstToken, TimeoutIdle, TimeoutTotal}
}

// WarnClientLimit is the warning of a request for which this machine had no socket or port left.
const WarnClientLimit = "client_limit"

// TokenSource says where the output token count came from, the most trusted first.
type TokenSource string

// Sources of a token count.
const (
	TokensFromUsage  TokenSource = "usage"  // usage.completion_tokens of the last event that had it
	TokensFromEngine TokenSource = "engine" // eval_count, timings.predicted_n
	TokensFromChunks TokenSource = "chunks" // text-bearing chunks counted by the client
)

// Result is what one request looked like from the client. Durations are measured on the
// monotonic clock from SentAt, the moment the request was handed to the connection for writing;
// a nil pointer means the value is undefined (never zero by accident).
type Result struct {
	// SentAt has a monotonic reading. Where nothing was ever written (the connection failed) it is
	// the moment at which the attempt began.
	SentAt time.Time
	Dial   time.Duration // connecting, TLS included, before SentAt; 0 on a reused connection
	Reused bool          // the connection had served a request before

	Header     *time.Duration // response headers
	FirstEvent *time.Duration // first event of any kind
	TTFT       *time.Duration // first generated text on any channel
	FirstText  *time.Duration // first text on the content channel
	E2E        *time.Duration // last token or finish event; not usage, [DONE] or EOF
	TPOT       *time.Duration // (last text − first text)/(n − n_first)
	FailedAt   *time.Duration // the failure was known: headers of an error status, error event, broken connection
	End        time.Duration  // the connection was done with: EOF, error or abort

	// The values above are the latest possible ones. Those below are the earliest, and differ from
	// them only where the client read late: two chunks or more then waited together, and of all but the
	// last it isn't known when they came, only after what and before what.
	TTFTMin, E2EMin, TPOTMin *time.Duration

	// Gaps are the times between text-bearing chunks, one for each chunk after the first. Chunks
	// that arrived together have a gap of zero. GapsMin are the shortest possible ones; it is nil where
	// they are the same.
	Gaps, GapsMin []time.Duration

	Chunks             int // text-bearing chunks
	Comments           int // keep-alive comments in the stream
	PromptTokens       *int
	CachedPromptTokens *int
	OutputTokens       *int
	TokenSource        TokenSource // "" when OutputTokens is nil

	// QueueWait is the time the request waited in the server's queue, when the dialect's own
	// timings say so; QueueWaitSource names them.
	QueueWait       *time.Duration
	QueueWaitSource string

	Outcome     Outcome
	TimeoutKind TimeoutKind // set when Outcome is Timeout
	HTTPStatus  int         // 0 when no response came
	RetryAfter  *time.Duration
	Error       string   // short and free of secrets; "" for ok
	Warnings    []string // e.g. "no_done"; fixed words, never server text
	// StampSource is how the text chunks were stamped: "kernel", by the kernel; "read", when conn.Read
	// returned; "mixed". ReadStamped is how many were stamped by the read, LateChunks how many were
	// read only after the next one had come.
	StampSource             string
	ReadStamped, LateChunks int
}

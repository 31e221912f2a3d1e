package wire

import (
	"slices"
	"time"

	"firstbreach/loadgen/arrival"
)

// maxChoices bounds the choices of one answer.
const maxChoices = 128

// tally turns the events of one answer into its numbers. It knows nothing of connections; times
// are the stamps of the reads that completed the events.
type tally struct {
	firstEvent, firstText, firstContent, lastText, finished time.Time
	// The earliest possible times where they aren't known exactly; else the same as above.
	firstTextMin, lastTextMin, finishedMin time.Time

	// earliest is, while a read that was late is being decoded, the moment before which its events
	// can't have come; else zero.
	earliest time.Time

	readStamped, lateChunks int

	chunks      int // text chunks, counted for each choice
	gaps        []time.Duration
	gapsMin     []time.Duration // nil while it would be the same as gaps
	gapFrom     time.Time       // latest time of the chunk before the latest one; zero when that was its choice's first
	choices     []choiceState
	firstTokens int // tokens generated up to the first text chunk, where the server counts along; else 0
	events      int

	promptTokens, cachedTokens, outputTokens int
	usageAfterEnd                            bool

	engine    engine
	hasEngine bool

	done bool // [DONE], or done:true
	late int  // objects after the terminal marker

	failure  *failure
	failedAt time.Time
	warnings []string
}

// choiceState is how far one choice got.
type choiceState struct {
	index       int
	finished    bool
	lastText    time.Time
	lastTextMin time.Time
	lastEvent   int // number of the event that brought lastText
}

// add counts one event.
func (t *tally) add(e *event, at time.Time) {
	if t.done {
		t.late++
		return
	}
	t.events++
	if t.firstEvent.IsZero() {
		t.firstEvent = at
	}
	text := false
	for i := range e.choices {
		text = t.addChoice(&e.choices[i], at) || text
	}
	t.addUsage(e)
	if text {
		if t.firstText.IsZero() {
			t.firstText, t.firstTextMin = at, t.min(at)
			t.firstTokens = max(e.outputTokens, e.engine.outputTokens)
		}
		t.lastText, t.lastTextMin = at, t.min(at)
	}
	if e.done {
		t.done = true
	}
}

// min is the earliest moment at which the event being added can have come, at being the latest.
func (t *tally) min(at time.Time) time.Time {
	if t.earliest.IsZero() {
		return at
	}
	return t.earliest
}

// addGap adds a gap between two chunks, the shortest it can have been beside the longest.
func (t *tally) addGap(longest, shortest time.Duration) {
	if t.gapsMin == nil && shortest != longest {
		t.gapsMin = append(make([]time.Duration, 0, cap(t.gaps)+1), t.gaps...)
	}
	t.gaps = append(t.gaps, longest)
	if t.gapsMin != nil {
		t.gapsMin = append(t.gapsMin, shortest)
	}
}

// exact takes back the intervals of events that were decoded with this latest time: they came then. At
// most one of them had text.
func (t *tally) exact(at time.Time) {
	if t.firstText.Equal(at) {
		t.firstTextMin = at
	}
	if t.lastText.Equal(at) {
		t.lastTextMin = at
	}
	if t.finished.Equal(at) {
		t.finishedMin = at
	}
	for i := range t.choices {
		c := &t.choices[i]
		if !c.lastText.Equal(at) {
			continue
		}
		c.lastTextMin = at
		if t.gapsMin != nil && !t.gapFrom.IsZero() {
			t.gapsMin[len(t.gapsMin)-1] = max(0, at.Sub(t.gapFrom))
		}
	}
}

// note keeps how the chunks of a read were stamped.
func (t *tally) note(chunks, late int, s arrival.Stamp) {
	t.lateChunks += late
	if s.Source != arrival.SourceKernel {
		t.readStamped += chunks
	}
}

// source says how the text chunks were stamped. An answer without any says "read": nothing of it
// rests on a better stamp.
func (t *tally) source() string {
	switch n := t.chunks; {
	case t.readStamped >= n:
		return string(arrival.SourceRead)
	case t.readStamped == 0:
		return string(arrival.SourceKernel)
	}
	return "mixed"
}

// addChoice counts what an event says of one choice and reports whether it has text.
func (t *tally) addChoice(c *choice, at time.Time) bool {
	s := t.choice(c.index)
	if s == nil {
		t.fail(Protocol, "an answer with more than 128 choices", at)
		return false
	}
	if c.text {
		if s.lastEvent != t.events {
			t.chunks++
			t.gapFrom = s.lastText
			if !s.lastText.IsZero() {
				t.addGap(at.Sub(s.lastTextMin), max(0, t.min(at).Sub(s.lastText)))
			}
		}
		s.lastText, s.lastTextMin, s.lastEvent = at, t.min(at), t.events
		if c.content && t.firstContent.IsZero() {
			t.firstContent = at
		}
	}
	if c.finish == finishNone {
		return c.text
	}
	s.finished = true
	t.finished, t.finishedMin = at, t.min(at)
	switch c.finish {
	case finishFilter:
		t.warn("content_filter")
	case finishFailed, finishOther:
		t.fail(ServerError, "finish reason "+c.reason, at)
	case finishLoading:
		t.fail(Loading, "the answer is that the model was loaded, not a generation", at)
	}
	return c.text
}

// choice returns the state of the choice with this index, nil when there are too many.
func (t *tally) choice(index int) *choiceState {
	for i := range t.choices {
		if t.choices[i].index == index {
			return &t.choices[i]
		}
	}
	if len(t.choices) == maxChoices {
		return nil
	}
	t.choices = append(t.choices, choiceState{index: index})
	return &t.choices[len(t.choices)-1]
}

// addUsage keeps the greatest count: servers send zeros, running totals and corrections, but
// never parts to be summed.
func (t *tally) addUsage(e *event) {
	if e.outputTokens > 0 {
		if t.usageAfterEnd && e.outputTokens != t.outputTokens {
			t.warn("usage_differs")
		}
		t.usageAfterEnd = t.complete()
	}
	t.outputTokens = max(t.outputTokens, e.outputTokens)
	t.promptTokens = max(t.promptTokens, e.promptTokens)
	t.cachedTokens = max(t.cachedTokens, e.cachedTokens)
	if e.hasEngine {
		t.engine, t.hasEngine = e.engine, true
	}
}

// fail notes the first failure; what comes later is a consequence of it.
func (t *tally) fail(o Outcome, message string, at time.Time) {
	if t.failure == nil {
		t.failure = &failure{o, message}
		t.failedAt = at
	}
}

func (t *tally) warn(word string) {
	if !slices.Contains(t.warnings, word) {
		t.warnings = append(t.warnings, word)
	}
}

// complete reports whether every choice seen has finished.
func (t *tally) complete() bool {
	for i := range t.choices {
		if !t.choices[i].finished {
			return false
		}
	}
	return len(t.choices) > 0
}

// settled reports whether nothing more is expected of the stream.
func (t *tally) settled() bool { return t.done || t.failure != nil }

// truncated says why a stream that ended cleanly is not a complete answer; "" when it is one.
func (t *tally) truncated() string {
	switch {
	case t.events == 0 && !t.done:
		return "the stream ended without any event"
	case len(t.choices) == 0:
		return "the stream ended without an answer"
	case !t.complete() && t.done:
		return "the stream was marked done without a finish reason on every choice"
	case !t.complete():
		return "the stream ended without a finish reason on every choice"
	}
	return ""
}

// unstream takes back what only a stream can say, after a whole answer was read as one event.
func (t *tally) unstream() {
	t.firstText, t.firstContent, t.firstEvent = time.Time{}, time.Time{}, time.Time{}
	t.firstTextMin = time.Time{}
	t.gaps, t.gapsMin, t.chunks = nil, nil, 0
}

// fill writes the numbers into r, whose outcome and SentAt are set.
func (t *tally) fill(r *Result) {
	since := func(at time.Time) *time.Duration {
		if at.IsZero() {
			return nil
		}
		d := at.Sub(r.SentAt)
		return &d
	}
	r.FirstEvent, r.TTFT, r.FirstText = since(t.firstEvent), since(t.firstText), since(t.firstContent)
	r.TTFTMin = since(t.firstTextMin)
	r.E2E, r.E2EMin = since(later(t.lastText, t.finished)), since(later(t.lastTextMin, t.finishedMin))
	r.FailedAt = since(t.failedAt)
	r.Gaps, r.GapsMin, r.Chunks = t.gaps, t.gapsMin, t.chunks
	r.ReadStamped, r.LateChunks = min(t.readStamped, t.chunks), min(t.lateChunks, t.chunks)
	t.fillTokens(r)
	t.fillTPOT(r)
	t.fillQueueWait(r)
	t.checkSpread()
	r.Warnings = t.warnings
}

// fillTokens takes the most trusted count there is.
func (t *tally) fillTokens(r *Result) {
	prompt, cached := t.promptTokens, t.cachedTokens
	if t.hasEngine && prompt == 0 {
		prompt = t.engine.promptTokens
	}
	if t.hasEngine && cached == 0 {
		cached = t.engine.cachedTokens
	}
	r.PromptTokens = known(prompt)
	if r.PromptTokens != nil && cached <= prompt {
		r.CachedPromptTokens = known(cached)
	}
	switch {
	case t.outputTokens > 0:
		r.OutputTokens, r.TokenSource = known(t.outputTokens), TokensFromUsage
	case t.hasEngine && t.engine.outputTokens > 0:
		r.OutputTokens, r.TokenSource = known(t.engine.outputTokens), TokensFromEngine
	case t.chunks > 0:
		r.OutputTokens, r.TokenSource = known(t.chunks), TokensFromChunks
	}
}

// known returns nil for 0, which servers send for "unknown".
func known(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// fillTPOT is (last text − first text)/(n − n_first), where n_first counts the tokens up to the
// first text chunk: what the server says, else one. It is undefined for a single chunk, and for
// several choices, whose tokens are not counted apart.
func (t *tally) fillTPOT(r *Result) {
	if t.chunks < 2 || len(t.choices) != 1 || r.OutputTokens == nil {
		return
	}
	rest := *r.OutputTokens - max(t.firstTokens, 1)
	if rest < 1 {
		return
	}
	longest := t.lastText.Sub(t.firstTextMin) / time.Duration(rest)
	shortest := max(0, t.lastTextMin.Sub(t.firstText)) / time.Duration(rest)
	r.TPOT, r.TPOTMin = &longest, &shortest
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// checkSpread warns where the chunks came in few reads, as through a proxy that buffers: then
// the gaps between them say nothing about the server.
func (t *tally) checkSpread() {
	if len(t.gaps) < 8 {
		return
	}
	zero := 0
	for _, g := range t.gaps {
		if g == 0 {
			zero++
		}
	}
	switch {
	case zero*10 >= len(t.gaps)*9:
		t.warn("buffered")
	case zero*2 > len(t.gaps):
		t.warn("bursty")
	}
}

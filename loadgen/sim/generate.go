package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// maxBody bounds a request body, in bytes.
const maxBody = 16 << 20

// generate answers requests for text in one dialect.
func (s *server) generate(d dialect) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			refuse(w, d, trouble{status: http.StatusBadRequest, message: "the body could not be read: " + err.Error(), kind: "BadRequestError"})
			return
		}
		c, err := d.read(body)
		if err != nil {
			refuse(w, d, trouble{status: http.StatusBadRequest, message: err.Error(), kind: "BadRequestError"})
			return
		}
		if !s.serves(c.model) {
			refuse(w, d, trouble{status: http.StatusNotFound, kind: "NotFoundError", param: "model",
				message: fmt.Sprintf("The model `%s` does not exist, or was not found. Ask for %s.", c.model, s.cfg.Model)})
			return
		}
		if !c.limited {
			c.limit = s.cfg.DefaultTokens
		}
		stream, err := s.engine.Submit(c.prompt, c.limit, !c.limited)
		if err != nil {
			s.turnAway(w, r, d, c, err)
			return
		}
		a := &answer{
			call: c, number: stream.number, model: quote(c.model), created: time.Now(),
			natural: stream.natural, stamp: s.cfg.Stamp,
		}
		if c.stream {
			s.stream(w, r, d, a, stream)
		} else {
			s.whole(w, r, d, a, stream)
		}
	})
}

// serves reports whether the model is the one there is; Ollama's default tag may be added.
func (s *server) serves(model string) bool {
	return model == s.cfg.Model || model == s.cfg.Model+":latest"
}

// early reports whether a stream's headers go out before the request is queued.
func (s *server) early(d dialect) bool {
	return s.cfg.Headers == HeadersAtOnce || s.cfg.Headers == HeadersAuto && d.early()
}

// stream writes tokens as the engine yields them.
func (s *server) stream(w http.ResponseWriter, r *http.Request, d dialect, a *answer, st *Stream) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", d.media())
	w.Header().Set("X-Accel-Buffering", "no")
	if s.early(d) && !st.hold {
		w.WriteHeader(http.StatusOK)
		_ = out.Flush() // a client that is gone shows at the first token
	}
	var buf []byte
	for seen := 0; ; {
		p, err := st.Next(r.Context(), seen)
		if err != nil {
			s.engine.Cancel(st)
			return
		}
		if p.Done && p.Failure == FailStatus {
			refuse(w, d, s.failure())
			return
		}
		a.sent = 0
		if a.stamp {
			a.sent = monotonic()
		}
		buf = buf[:0]
		for ; seen < p.Tokens; seen++ {
			buf = d.token(buf, a, seen)
		}
		if p.Done {
			buf = s.last(buf, d, a, p)
		}
		if err := send(w, out, buf); err != nil {
			s.engine.Cancel(st)
			return
		}
		if p.Done {
			if p.Failure == FailReset {
				hangUp(r)
			}
			return
		}
	}
}

// last appends what ends a stream.
func (s *server) last(buf []byte, d dialect, a *answer, p Progress) []byte {
	switch p.Failure {
	case FailError:
		return d.failed(buf, s.failure())
	case FailNoFinish:
		return d.unfinished(buf, a)
	case FailReset, FailTruncate:
		return buf
	default:
		return d.finish(buf, a, p)
	}
}

func send(w io.Writer, out *http.ResponseController, buf []byte) error {
	if len(buf) == 0 {
		return nil
	}
	if _, err := w.Write(buf); err != nil {
		return err
	}
	return out.Flush()
}

// whole waits for the whole answer and writes it.
func (s *server) whole(w http.ResponseWriter, r *http.Request, d dialect, a *answer, st *Stream) {
	for seen := 0; ; {
		p, err := st.Next(r.Context(), seen)
		if err != nil {
			s.engine.Cancel(st)
			return
		}
		seen = p.Tokens
		if !p.Done {
			continue
		}
		switch p.Failure {
		case FailNone:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(d.whole(a, p)) // nobody is left to tell
		case FailReset, FailTruncate, FailNoFinish:
			hangUp(r)
		default:
			refuse(w, d, s.failure())
		}
		return
	}
}

// failure is what a request that fails is told.
func (s *server) failure() trouble {
	status := s.cfg.ErrorStatus
	if status == http.StatusOK {
		status = http.StatusInternalServerError
	}
	return trouble{status: status, message: "EngineCore encountered an issue. This failure was asked for.", kind: "InternalServerError"}
}

// turnAway answers a request that the engine did not take.
func (s *server) turnAway(w http.ResponseWriter, r *http.Request, d dialect, c call, err error) {
	switch {
	case errors.Is(err, errDown):
		hangUp(r)
	case errors.Is(err, errLoading):
		refuse(w, d, trouble{status: http.StatusServiceUnavailable, message: "Loading model", kind: "unavailable_error"})
	case errors.Is(err, errTooLong):
		refuse(w, d, trouble{status: http.StatusBadRequest, kind: "BadRequestError", param: "max_tokens",
			message: fmt.Sprintf("%d prompt tokens and %d output tokens do not fit into the KV cache of %d tokens.", c.prompt, c.limit, s.cfg.KVTokens)})
	default:
		s.reject(w, r, d, c)
	}
}

// reject turns a request away because the engine is full.
func (s *server) reject(w http.ResponseWriter, r *http.Request, d dialect, c call) {
	if !wait(r.Context(), s.cfg.RejectDelay) {
		return
	}
	t := trouble{status: http.StatusServiceUnavailable, kind: "Service Unavailable",
		message: "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."}
	if s.cfg.Reject == Reject429 {
		t.status, t.kind = http.StatusTooManyRequests, "Too Many Requests"
	}
	if s.cfg.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(s.cfg.RetryAfter.Seconds()))))
	}
	if s.cfg.Reject == RejectInBand && c.stream {
		w.Header().Set("Content-Type", d.media())
		_, _ = w.Write(d.failed(nil, t)) // nobody is left to tell
		return
	}
	refuse(w, d, t)
}

// wait waits for d and reports whether ctx is still alive.
func wait(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refuse writes an error status in the dialect's form.
func refuse(w http.ResponseWriter, d dialect, t trouble) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(t.status)
	_, _ = w.Write(d.refusal(t)) // nobody is left to tell
}

// hangUp resets the request's connection. It does not return: net/http takes the panic as the order
// to break off.
func hangUp(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*gateConn); ok {
		c.reset()
	}
	panic(http.ErrAbortHandler)
}

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of fault.
const (
	// FaultStall stops the engine for a while: no token, no admission; requests still arrive.
	FaultStall = "stall"
	// FaultCrash drops every connection, refuses new ones for Down, then answers 503 "Loading model"
	// for Load; queue, batch and metrics start anew.
	FaultCrash = "crash"
	// FaultReset resets the connection after Tokens tokens.
	FaultReset = "reset"
	// FaultError ends the stream after Tokens tokens with an error event and [DONE].
	FaultError = "error"
	// FaultTruncate ends the stream cleanly after Tokens tokens, with no finish reason and no [DONE].
	FaultTruncate = "truncate"
	// FaultNoFinish ends the stream after Tokens tokens with [DONE] but no finish reason.
	FaultNoFinish = "no-finish"
)

// Fault is one thing that goes wrong. It is triggered by a request's number or by the time since the
// engine started, or at once when it has neither.
type Fault struct {
	Kind    string
	At      time.Duration // since the start of the engine
	Request int           // number of the request, from 1; 0: none
	Count   int           // reset, error, truncate, no-finish: how many requests in a row; 0 means 1
	Tokens  int           // of those requests, yielded before the fault
	For     time.Duration // stall
	Down    time.Duration // crash
	Load    time.Duration // crash
}

// perRequest reports whether the fault befalls single requests rather than the engine.
func (f Fault) perRequest() bool { return f.Kind != FaultStall && f.Kind != FaultCrash }

// count is how many requests the fault befalls.
func (f Fault) count() int { return max(f.Count, 1) }

// ParseFault reads a fault from its text form, a kind and comma-separated settings, for example
//
//	stall:at=20s,for=5s
//	reset:request=17,tokens=3
//	crash:at=30s,down=2s,load=3s
func ParseFault(text string) (Fault, error) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), ":")
	f := Fault{Kind: kind}
	if rest != "" {
		for _, pair := range strings.Split(rest, ",") {
			key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok {
				return Fault{}, fmt.Errorf("fault %q: %q is not key=value", text, pair)
			}
			if err := f.set(key, value); err != nil {
				return Fault{}, fmt.Errorf("fault %q: %w", text, err)
			}
		}
	}
	if err := f.Validate(); err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	return f, nil
}

func (f *Fault) set(key, value string) error {
	durations := map[string]*time.Duration{"at": &f.At, "for": &f.For, "down": &f.Down, "load": &f.Load}
	numbers := map[string]*int{"request": &f.Request, "count": &f.Count, "tokens": &f.Tokens}
	var err error
	switch {
	case durations[key] != nil:
		*durations[key], err = time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("%s=%q is not a duration such as 5s or 250ms", key, value)
		}
	case numbers[key] != nil:
		*numbers[key], err = strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%s=%q is not a whole number", key, value)
		}
	default:
		return fmt.Errorf("unknown setting %q: use at, request, count, tokens, for, down or load", key)
	}
	return nil
}

// Validate returns what is wrong with the fault.
func (f Fault) Validate() error {
	kinds := []string{FaultStall, FaultCrash, FaultReset, FaultError, FaultTruncate, FaultNoFinish}
	switch {
	case !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("unknown kind %q: one of %s", f.Kind, strings.Join(kinds, ", "))
	case f.At < 0 || f.For < 0 || f.Down < 0 || f.Load < 0 || f.Request < 0 || f.Count < 0 || f.Tokens < 0:
		return fmt.Errorf("no setting may be below 0")
	case f.At > 0 && f.Request > 0:
		return fmt.Errorf("give at or request, not both")
	case f.Kind == FaultStall && f.For == 0:
		return fmt.Errorf("a stall needs for=, its length")
	case f.Kind != FaultStall && f.For != 0:
		return fmt.Errorf("for= belongs to a stall")
	case f.Kind != FaultCrash && (f.Down != 0 || f.Load != 0):
		return fmt.Errorf("down= and load= belong to a crash")
	case !f.perRequest() && (f.Count != 0 || f.Tokens != 0):
		return fmt.Errorf("count= and tokens= belong to faults of single requests")
	}
	return nil
}

// String returns the text form that ParseFault reads.
func (f Fault) String() string {
	var settings []string
	add := func(key string, set bool, value any) {
		if set {
			settings = append(settings, fmt.Sprintf("%s=%v", key, value))
		}
	}
	add("at", f.At != 0, f.At)
	add("request", f.Request != 0, f.Request)
	add("count", f.Count != 0, f.Count)
	add("tokens", f.Tokens != 0, f.Tokens)
	add("for", f.For != 0, f.For)
	add("down", f.Down != 0, f.Down)
	add("load", f.Load != 0, f.Load)
	if len(settings) == 0 {
		return f.Kind
	}
	return f.Kind + ":" + strings.Join(settings, ",")
}

// failureOf is what a fault of single requests does to one.
func failureOf(kind string) Failure {
	switch kind {
	case FaultError:
		return FailError
	case FaultTruncate:
		return FailTruncate
	case FaultNoFinish:
		return FailNoFinish
	default:
		return FailReset
	}
}

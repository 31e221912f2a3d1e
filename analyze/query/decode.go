package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// The client library decodes an answer in several passes and with reflection, which for a long run
// takes about as long as Prometheus takes to compute it. The format is small and stable
// (prometheus.io/docs/prometheus/latest/querying/api), so it is read here in one pass, into the
// library's own types.

// response is one answer of the query endpoints.
type response struct {
	value    model.Value
	warnings []string
	infos    []string
	refused  *v1.Error
}

// decode reads the body of an answer.
func decode(body []byte) (response, error) {
	s := &scanner{b: body, strings: map[string]string{}}
	var r response
	var status, errorType, message string
	s.object(func(key []byte) {
		switch string(key) {
		case "status":
			status = s.text()
		case "data":
			r.value = s.data()
		case "warnings":
			r.warnings = s.texts()
		case "infos":
			r.infos = s.texts()
		case "errorType":
			errorType = s.text()
		case "error":
			message = s.text()
		default:
			s.skip()
		}
	})
	switch {
	case s.err != nil:
		return r, fmt.Errorf("the answer isn't that of a Prometheus: %w", s.err)
	case status == "error":
		r.refused = &v1.Error{Type: v1.ErrorType(errorType), Msg: message}
	case status != "success":
		return r, errors.New("the answer isn't that of a Prometheus: it has no status")
	}
	return r, nil
}

// scanner reads JSON once, from front to back. After an error it reads nothing more.
type scanner struct {
	b       []byte
	i       int
	err     error
	strings map[string]string // each label name and value once
}

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("%s at byte %d of %d", what, s.i, len(s.b))
	}
}

// next is the next byte that isn't white space, which stays; 0 at the end or after an error.
func (s *scanner) next() byte {
	if s.err != nil {
		return 0
	}
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	s.fail("unexpected end")
	return 0
}

// take consumes c, which must come next.
func (s *scanner) take(c byte) {
	if got := s.next(); got != c {
		s.fail(fmt.Sprintf("expected %q", c))
		return
	}
	s.i++
}

// more reports whether another element follows, given the closing byte; first is true before the
// first one. It consumes commas and the closing byte.
func (s *scanner) more(closing byte, first bool) bool {
	switch c := s.next(); {
	case s.err != nil:
		return false
	case c == closing:
		s.i++
		return false
	case first:
		return true
	case c == ',':
		s.i++
		return s.next() != 0
	}
	s.fail("expected a comma or an end")
	return false
}

// object calls f with each key; f must consume the value.
func (s *scanner) object(f func(key []byte)) {
	s.take('{')
	for first := true; s.more('}', first); first = false {
		key := s.raw()
		s.take(':')
		if s.err == nil {
			f(key)
		}
	}
}

// array calls f for each element; f must consume it. null is an empty array.
func (s *scanner) array(f func()) {
	if s.next() == 'n' {
		s.skip()
		return
	}
	s.take('[')
	for first := true; s.more(']', first); first = false {
		f()
	}
}

// raw is the bytes of a string, unescaped; they are only good until the next call where the string
// had escapes, and must not be changed.
func (s *scanner) raw() []byte {
	s.take('"')
	if s.err != nil {
		return nil
	}
	start := s.i
	end := bytes.IndexByte(s.b[start:], '"')
	if end >= 0 && bytes.IndexByte(s.b[start:start+end], '\\') < 0 {
		s.i = start + end + 1
		return s.b[start : start+end]
	}
	for i := start; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			i++
		case '"':
			var text string
			if err := json.Unmarshal(s.b[start-1:i+1], &text); err != nil {
				s.fail("bad string")
			}
			s.i = i + 1
			return []byte(text)
		}
	}
	s.fail("string without an end")
	return nil
}

// text is a string.
func (s *scanner) text() string { return s.intern(s.raw()) }

func (s *scanner) texts() []string {
	var out []string
	s.array(func() { out = append(out, s.text()) })
	return out
}

// skip consumes any value.
func (s *scanner) skip() {
	switch s.next() {
	case 0:
	case '"':
		s.raw()
	case '{':
		s.object(func([]byte) { s.skip() })
	case '[':
		s.array(s.skip)
	default:
		if len(s.literal()) == 0 {
			s.fail("expected a value")
		}
	}
}

// literal is a number, true, false or null.
func (s *scanner) literal() []byte {
	start := s.i
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return s.b[start:s.i]
		}
		s.i++
	}
	return s.b[start:]
}

// data is the value of a query. Its type comes before it everywhere that is known; where it
// doesn't, the value is read again once the type is known.
func (s *scanner) data() model.Value {
	var kind string
	var value model.Value
	from := -1
	s.object(func(key []byte) {
		switch string(key) {
		case "resultType":
			kind = s.text()
		case "result":
			if kind == "" {
				from = s.i
				s.skip()
				return
			}
			value = s.result(kind)
		default:
			s.skip()
		}
	})
	if from >= 0 && s.err == nil {
		end := s.i
		s.i = from
		value = s.result(kind)
		s.i = end
	}
	return value
}

func (s *scanner) result(kind string) model.Value {
	switch kind {
	case "vector":
		v := model.Vector{}
		s.array(func() {
			if x, ok := s.sample(); ok {
				v = append(v, x)
			}
		})
		return v
	case "matrix":
		m := model.Matrix{}
		s.array(func() { m = append(m, s.stream()) })
		return m
	case "scalar":
		p := s.pair()
		return &model.Scalar{Timestamp: p.Timestamp, Value: p.Value}
	case "string":
		s.skip()
		return &model.String{}
	}
	s.fail(fmt.Sprintf("unknown result type %q", kind))
	return nil
}

// sample is one element of a vector; ok is false for a native histogram, which is no number. No
// query here asks for one.
func (s *scanner) sample() (x *model.Sample, ok bool) {
	x = &model.Sample{}
	s.object(func(key []byte) {
		switch string(key) {
		case "metric":
			x.Metric = s.metric()
		case "value":
			p := s.pair()
			x.Timestamp, x.Value, ok = p.Timestamp, p.Value, true
		default:
			s.skip()
		}
	})
	return x, ok
}

// stream is one element of a matrix, without its native histograms.
func (s *scanner) stream() *model.SampleStream {
	x := &model.SampleStream{}
	s.object(func(key []byte) {
		switch string(key) {
		case "metric":
			x.Metric = s.metric()
		case "values":
			s.array(func() { x.Values = append(x.Values, s.pair()) })
		default:
			s.skip()
		}
	})
	return x
}

func (s *scanner) metric() model.Metric {
	m := model.Metric{}
	s.object(func(name []byte) {
		label := s.intern(name)
		m[model.LabelName(label)] = model.LabelValue(s.text())
	})
	return m
}

// intern is the bytes as a string; equal ones share their memory.
func (s *scanner) intern(b []byte) string {
	if t, ok := s.strings[string(b)]; ok {
		return t
	}
	t := string(b)
	s.strings[t] = t
	return t
}

// pair is [unix seconds, "value"].
func (s *scanner) pair() model.SamplePair {
	s.take('[')
	s.next()
	at, errT := strconv.ParseFloat(string(s.literal()), 64)
	s.take(',')
	value, errV := strconv.ParseFloat(string(s.raw()), 64)
	s.take(']')
	// A value out of range is ±Inf, as it should be.
	if s.err == nil && (errT != nil || errV != nil && !errors.Is(errV, strconv.ErrRange)) {
		s.fail("expected a time and a value")
	}
	return model.SamplePair{Timestamp: model.Time(math.Round(at * 1000)), Value: model.SampleValue(value)}
}

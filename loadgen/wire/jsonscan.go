package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
)

// maxDepth bounds the nesting of a JSON value that is looked through.
const maxDepth = 256

// scanner walks one JSON value and stops only at what the caller asks for. It validates all of
// it (RFC 8259; bytes inside strings are not checked for UTF-8), allocates nothing and accepts a
// value of another type than the expected one by skipping it, because servers send null, numbers
// and lists in odd places. Duplicate keys are seen one after the other, so the last one wins.
//
// It exists because decoding is the client's cost per token: a struct filled by reflection costs
// several times the read that brought the bytes.
type scanner struct {
	b     []byte
	i     int
	depth int
	bad   bool // not JSON; everything returns "no more" from here on

	escaped bool // a string had an escape since this was last cleared
}

// end reports whether the value was valid JSON with nothing behind it.
func (s *scanner) end() bool {
	return s.peek() == 0 && s.i >= len(s.b) && !s.bad
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) fail() { s.bad = true; s.i = len(s.b) }

// object enters an object and reports whether it has a member. Any other value is skipped.
//
//	for more := s.object(); more; more = s.next('}') { switch string(s.key()) { … } }
//
// Each turn has to consume the member's value.
func (s *scanner) object() bool { return s.begin('{', '}') }

// array enters an array and reports whether it has an element. Any other value is skipped.
func (s *scanner) array() bool { return s.begin('[', ']') }

func (s *scanner) begin(open, shut byte) bool {
	if s.peek() != open {
		s.skip()
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail()
		return false
	}
	s.i++
	if s.peek() == shut {
		s.i++
		s.depth--
		return false
	}
	return !s.bad
}

// next steps over the comma before the following member or element, or over shut.
func (s *scanner) next(shut byte) bool {
	if s.bad {
		return false
	}
	switch s.peek() {
	case ',':
		s.i++
		return true
	case shut:
		s.i++
		s.depth--
	default:
		s.fail()
	}
	return false
}

// key consumes a member's name and colon. The name is valid until the next call of anything.
func (s *scanner) key() []byte {
	if s.peek() != '"' {
		s.fail()
		return nil
	}
	s.escaped = false
	name := s.rawString()
	if s.peek() != ':' {
		s.fail()
		return nil
	}
	s.i++
	if s.escaped {
		return unescape(name)
	}
	return name
}

// unescape resolves escapes, which hardly ever occur in what is read as a string here.
func unescape(raw []byte) []byte {
	var out string
	quoted := append(append([]byte{'"'}, raw...), '"')
	if json.Unmarshal(quoted, &out) != nil {
		return raw
	}
	return []byte(out)
}

// str consumes a value and returns it when it is a string.
func (s *scanner) str() ([]byte, bool) {
	if s.peek() != '"' {
		s.skip()
		return nil, false
	}
	s.escaped = false
	raw := s.rawString()
	if s.escaped {
		raw = unescape(raw)
	}
	return raw, !s.bad
}

// text consumes a value and reports whether it is a string with something in it, or a list of
// content parts of which one has such a text.
func (s *scanner) text() bool {
	switch s.peek() {
	case '"':
		return len(s.rawString()) > 0
	case '[':
		found := false
		for more := s.array(); more; more = s.next(']') {
			if s.peek() == '"' {
				found = s.text() || found
				continue
			}
			for more := s.object(); more; more = s.next('}') {
				switch string(s.key()) {
				case "text", "thinking":
					found = s.text() || found
				default:
					s.skip()
				}
			}
		}
		return found
	}
	s.skip()
	return false
}

// rawString consumes a string and returns what is between its quotes, escapes as they are.
func (s *scanner) rawString() []byte {
	s.i++
	start := s.i
	for {
		s.i += plain(s.b[s.i:])
		switch {
		case s.i >= len(s.b) || s.b[s.i] < 0x20:
			s.fail()
			return nil
		case s.b[s.i] == '"':
			s.i++
			return s.b[start : s.i-1]
		case !s.escape():
			s.fail()
			return nil
		}
	}
}

// plain is how many bytes at the beginning of b are neither a quote nor a backslash nor a control
// character. It looks at eight at once: strings are most of what a stream brings.
func plain(b []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, backslash := x^low*'"', x^low*'\\'
		// A byte's high bit is set where it, less what is subtracted, went below zero: in each term the
		// lowest one set is right, and only that is used.
		found := ((x-low*0x20)&^x | (quote-low)&^quote | (backslash-low)&^backslash) & high
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// escape steps over one escape sequence.
func (s *scanner) escape() bool {
	s.escaped = true
	if s.i+1 >= len(s.b) {
		return false
	}
	c := s.b[s.i+1]
	s.i += 2
	if c != 'u' {
		return bytes.IndexByte([]byte(`"\/bfnrt`), c) >= 0
	}
	for range 4 {
		if s.i >= len(s.b) || !isHex(s.b[s.i]) {
			return false
		}
		s.i++
	}
	return true
}

func isHex(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number consumes a value and returns it when it is a number.
func (s *scanner) number() (float64, bool) {
	if c := s.peek(); c != '-' && !isDigit(c) {
		s.skip()
		return 0, false
	}
	raw := s.rawNumber()
	v, err := strconv.ParseFloat(string(raw), 64)
	return v, err == nil && !s.bad
}

// count consumes a value and returns it when it is a whole number that a count can be.
func (s *scanner) count() (int, bool) {
	if c := s.peek(); isDigit(c) {
		if n, ok := s.digit(); ok {
			return n, true
		}
	}
	v, ok := s.number()
	if !ok || v < 0 || v > 1<<40 {
		return 0, false
	}
	return int(v), true
}

// digit consumes a number of one digit, which the index of a choice mostly is.
func (s *scanner) digit() (int, bool) {
	if s.i+1 < len(s.b) && (s.b[s.i+1] == ',' || s.b[s.i+1] == '}') {
		s.i++
		return int(s.b[s.i-1] - '0'), true
	}
	return 0, false
}

// boolean consumes a value and reports whether it is true.
func (s *scanner) boolean() bool {
	is := s.peek() == 't'
	s.skip()
	return is && !s.bad
}

func (s *scanner) rawNumber() []byte {
	start := s.i
	if s.at() == '-' {
		s.i++
	}
	if s.at() == '0' {
		s.i++
	} else if !s.digits() {
		return nil
	}
	if s.at() == '.' {
		s.i++
		if !s.digits() {
			return nil
		}
	}
	if s.at()|0x20 == 'e' {
		s.i++
		if c := s.at(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return nil
		}
	}
	return s.b[start:s.i]
}

// at returns the byte at the position, 0 at the end.
func (s *scanner) at() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// digits steps over one digit or more.
func (s *scanner) digits() bool {
	start := s.i
	for isDigit(s.at()) {
		s.i++
	}
	if s.i == start {
		s.fail()
		return false
	}
	return true
}

// skip consumes one value of any type.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '{':
		for more := s.object(); more; more = s.next('}') {
			s.key()
			s.skip()
		}
	case c == '[':
		for more := s.array(); more; more = s.next(']') {
			s.skip()
		}
	case c == '"':
		s.rawString()
	case c == '-' || isDigit(c):
		s.rawNumber()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	default:
		s.fail()
	}
}

func (s *scanner) literal(word string) {
	if !bytes.HasPrefix(s.b[s.i:], []byte(word)) {
		s.fail()
		return
	}
	s.i += len(word)
}

// null consumes a null and reports whether there was one.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.skip()
	return true
}

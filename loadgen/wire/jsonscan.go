package wire

import (
	"bytes"
	"encoding/json"
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
	name := s.rawString()
	if s.peek() != ':' {
		s.fail()
		return nil
	}
	s.i++
	return unescape(name)
}

// unescape resolves escapes, which hardly ever occur in what is read as a string here.
func unescape(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
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
	return unescape(s.rawString()), !s.bad
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
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1]
		case c == '\\':
			if !s.escape() {
				s.fail()
				return nil
			}
		case c < 0x20:
			s.fail()
			return nil
		default:
			s.i++
		}
	}
	s.fail()
	return nil
}

// escape steps over one escape sequence.
func (s *scanner) escape() bool {
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
	v, ok := s.number()
	if !ok || v < 0 || v > 1<<40 {
		return 0, false
	}
	return int(v), true
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

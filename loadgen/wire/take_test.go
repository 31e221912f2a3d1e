package wire

import "testing"

func TestEventsOfARead(t *testing.T) {
	for _, tt := range []struct {
		b      string
		last   int
		events int
	}{
		{"data: a\n\n", 0, 1},
		{"data: a\n\ndata: b\n\n", 9, 2},
		{"rest\n\ndata: b\n\n", 6, 2},
		{"data: a\n\ndata: b", 9, 2},
		{"data: a\r\n\r\ndata: b\r\n\r\n", 11, 2},
		{"data: a\r\rdata: b\r\r", 9, 2},
		{"{}\n{}\n{}\n", 6, 3},
		{"{}\n", 0, 1},
		{"\n", 0, 1},
	} {
		if last, n := lastEvent([]byte(tt.b)), eventsIn([]byte(tt.b)); last != tt.last || n != tt.events {
			t.Errorf("%q: last at %d of %d, want %d of %d", tt.b, last, n, tt.last, tt.events)
		}
	}
}

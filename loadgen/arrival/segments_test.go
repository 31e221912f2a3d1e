package arrival

import "testing"

func TestSegments(t *testing.T) {
	type read struct {
		bytes    int
		full     bool
		received uint32 // what the kernel says so far; 0: it isn't asked
		events   int
		late     bool
	}
	for name, reads := range map[string][]read{
		"two events of one write":              {{bytes: 500, received: 1, events: 2}},
		"two segments read together":           {{bytes: 500, received: 2, events: 2, late: true}},
		"one a read, then two together":        {{bytes: 250}, {bytes: 250}, {bytes: 500, received: 4, events: 2, late: true}},
		"one a read, then two of one write":    {{bytes: 250}, {bytes: 250}, {bytes: 500, received: 3, events: 2}},
		"asked twice":                          {{bytes: 500, received: 2, events: 2, late: true}, {bytes: 250}, {bytes: 500, received: 4, events: 2}},
		"ten events of one write, three units": {{bytes: 3000, received: 1, events: 2}, {bytes: 3000, received: 4, events: 10}},
		"ten events in ten segments":           {{bytes: 3000, received: 10, events: 10, late: true}},
		"three large events, maybe together":   {{bytes: 100, received: 1, events: 2}, {bytes: 3000, received: 4, events: 3, late: true}},
		"a long event between":                 {{bytes: 100, received: 1, events: 2}, {bytes: 2900}, {bytes: 500, received: 4, events: 2}},
		"late over a full buffer":              {{bytes: 4096, full: true, received: 20, events: 14, late: true}, {bytes: 1700, received: 20, events: 6, late: true}, {bytes: 500, received: 21, events: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var s segments
			for i, r := range reads {
				s.read(r.bytes, r.full)
				if r.received == 0 {
					continue
				}
				if got := s.late(r.received, 1448, r.events); got != r.late {
					t.Errorf("read %d: late %v, want %v", i, got, r.late)
				}
			}
		})
	}
}

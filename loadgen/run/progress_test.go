package run

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

func place() Place {
	return Place{Stage: plan.Stage{Phase: plan.PhaseRamp, Round: 2, Step: 3, Concurrency: 8}, Rounds: 3, Number: 4, Of: 6, Requests: 100}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, false)
	p.Begin(place())
	p.Update(place(), record.Glance{All: 3})
	p.Update(place(), record.Glance{Finished: 40, OK: 39, TTFTP95: 123456 * time.Microsecond, Elapsed: 16 * time.Second})
	p.End(place(), record.Glance{Finished: 100, OK: 98, Elapsed: 40 * time.Second}, "max_duration: 10m")
	p.Note("waiting")
	want := `round 2/3  ramp      step 4/6  concurrency 8  ... 0 measured  warming up (3 requests)
round 2/3  ramp      step 4/6  concurrency 8  ... 40 measured  TTFT P95 123.46ms  ok 97.5%  2.5 req/s
round 2/3  ramp      step 4/6  concurrency 8  100 measured  TTFT P95 -  ok 98.0%  2.5 req/s  [max_duration: 10m]
waiting
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// The bar leaves the same line as plain progress for every step that has ended.
func TestBar(t *testing.T) {
	for _, requests := range []int{100, 0} {
		at := place()
		at.Requests = requests
		var out bytes.Buffer
		p := NewProgress(&out, true)
		p.Begin(at)
		for n := range 150 {
			p.Update(at, record.Glance{Finished: n, OK: n, Elapsed: time.Second})
		}
		p.End(at, record.Glance{Finished: 150, OK: 150, Elapsed: time.Minute}, "")
		p.Note("done")
		if !strings.HasSuffix(out.String(), "\rround 2/3  ramp      step 4/6  concurrency 8  150 measured  TTFT P95 -  ok 100.0%  2.5 req/s\ndone\n") {
			t.Errorf("the output ends with %q", out.String()[max(0, out.Len()-200):])
		}
	}
}

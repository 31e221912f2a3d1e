package report

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"firstbreach/analyze/verdict"
)

// grid is a run of so many steps and rounds.
func grid(steps, rounds int) verdict.Run {
	run := breachRun()
	run.Steps, run.Ladder, run.Latency, run.Rounds = nil, nil, nil, rounds
	at := began
	for c := 1; c <= steps; c++ {
		run.Ladder = append(run.Ladder, c)
	}
	for round := 1; round <= rounds; round++ {
		for _, c := range run.Ladder {
			l := rungSpec{verdict.PhaseRamp, c, []int64{0, 0, 0}, 0.1 * float64(c), float64(c), 0, 3, 40}
			s := stepOf(l, 1+(round-1)%3, at)
			s.Round = round
			run.Steps = append(run.Steps, s)
			at += l.duration + 1
		}
	}
	for _, c := range run.Ladder {
		q := spread(0.1*float64(c), 1.2)
		run.Latency = append(run.Latency, verdict.StepLatency{Phase: verdict.PhaseRamp, Concurrency: c, TTFT: q, E2E: q, TPOT: q})
	}
	return run
}

func BenchmarkReport(b *testing.B) {
	for _, size := range []struct{ steps, rounds int }{{4, 3}, {50, 10}} {
		run := grid(size.steps, size.rounds)
		b.Run(fmt.Sprintf("%dx%d", size.steps, size.rounds), func(b *testing.B) {
			for b.Loop() {
				d := New(run, verdict.Judge(run), Meta{})
				for _, write := range []func(io.Writer) error{d.WriteJSON, d.WriteMarkdown, d.WriteHTML, d.WriteJUnit} {
					if err := write(io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// A long ladder must still be a page that a browser opens at once.
func TestPageOfALongLadder(t *testing.T) {
	var buf bytes.Buffer
	run := grid(50, 10)
	if err := New(run, verdict.Judge(run), Meta{}).WriteHTML(&buf); err != nil {
		t.Fatal(err)
	}
	const most = 3 << 20
	if buf.Len() > most {
		t.Errorf("the page of 50 steps and 10 rounds has %d bytes, over %d", buf.Len(), most)
	}
}

package drive_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// diary keeps what a drill did, and when, since measuring began.
type diary struct {
	mu     sync.Mutex
	lines  []string
	noted  []string
	broken error // of the drill
	rec    *tape
}

func (d *diary) write(what string) func(context.Context) error {
	return func(ctx context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.rec.mu.Lock()
		begun := d.rec.start.Add(d.rec.at[record.Measure])
		d.rec.mu.Unlock()
		if what == drive.EventRestore && ctx.Err() != nil {
			return errors.New("the restore was interrupted")
		}
		d.lines = append(d.lines, fmt.Sprintf("%s at %s", what, time.Since(begun)))
		if what == drive.EventDrill {
			return d.broken
		}
		return nil
	}
}

func (d *diary) drill(at, lasts time.Duration) drive.Drill {
	return drive.Drill{
		Load: drive.Closed{Concurrency: 1}, At: at, For: lasts,
		Do: d.write(drive.EventDrill), Undo: d.write(drive.EventRestore),
		Note: func(event string, _, _ time.Time, err error) {
			d.noted = append(d.noted, fmt.Sprintf("%s %v", event, err))
		},
	}
}

// Whatever ends a drill, what undoes it is run, and only if it was done.
func TestDrill(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		at, lasts   time.Duration
		interrupt   time.Duration // since the beginning; 0: never
		abort       bool
		broken      error
		lines       []string
		stopped     string
		measuredFor time.Duration
	}{
		"undone in time":       {at: 2 * s, lasts: 3 * s, lines: []string{"drill at 2s", "restore at 5s"}, measuredFor: 10 * s},
		"undone at the end":    {at: 2 * s, lines: []string{"drill at 2s", "restore at 10.2s"}, measuredFor: 10 * s},
		"interrupted in it":    {at: 2 * s, lasts: 5 * s, interrupt: 4600 * time.Millisecond, lines: []string{"drill at 2s", "restore at 4.3s"}, stopped: drive.Interrupted, measuredFor: 4300 * time.Millisecond},
		"aborted in it":        {at: 2 * s, lasts: 5 * s, interrupt: 4600 * time.Millisecond, abort: true, lines: []string{"drill at 2s", "restore at 4.3s"}, stopped: drive.Interrupted, measuredFor: 4300 * time.Millisecond},
		"interrupted before":   {at: 2 * s, lasts: 5 * s, interrupt: 1600 * time.Millisecond, stopped: drive.Interrupted, measuredFor: 1300 * time.Millisecond},
		"a drill that fails":   {at: 2 * s, lasts: 5 * s, broken: errors.New("exit status 3"), lines: []string{"drill at 2s", "restore at 2s"}, stopped: "drill: exit status 3", measuredFor: 2 * s},
		"never reached its at": {at: 30 * s, measuredFor: 10 * s},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				abort := make(chan struct{})
				if tc.interrupt > 0 {
					time.AfterFunc(tc.interrupt, func() {
						cancel()
						if tc.abort {
							close(abort)
						}
					})
				}
				d := &diary{rec: newTape(), broken: tc.broken}
				sum, err := d.drill(tc.at, tc.lasts).Drive(ctx, drive.Step{
					Warmup: 1, Bounds: plan.Step{Duration: 10 * s}, Body: body, Recorder: d.rec, Sender: fake{service: 300 * time.Millisecond}, Grace: 5 * s, Abort: abort,
				})
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "done", d.lines, tc.lines)
				equal(t, "noted", len(d.noted), len(tc.lines))
				equal(t, "stopped", sum.Stopped, tc.stopped)
				equal(t, "measured for", sum.MeasureTo.Sub(sum.MeasureFrom), tc.measuredFor)
			})
		})
	}
}

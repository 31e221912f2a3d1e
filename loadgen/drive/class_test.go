package drive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/loadgen/drive"
	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
	"firstbreach/loadgen/wire"
)

// classTape also counts what is in flight of each class.
type classTape struct {
	*tape
	sent, returned [2]int
}

func (t *classTape) Sent(class int, now time.Time) {
	t.tape.Sent(class, now)
	t.sent[class]++
}

func (t *classTape) Returned(class int, now time.Time) {
	t.tape.Returned(class, now)
	t.returned[class]++
}

// Of a rate of 10 with a second of service, every other request low: the low ones are shed beyond four in
// flight, and the five a second that are high always find room.
func TestLowPriorityIsShedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &classTape{tape: newTape()}
		p := &plan.Plan{Classes: []plan.Class{{Weight: 1}, {Weight: 1}}}
		slow := fake{service: 950 * time.Millisecond}
		_, err := drive.Open{Rate: 10, MaxInFlight: 6}.Drive(t.Context(), drive.Step{
			Warmup: 4, Bounds: plan.Step{Requests: 100}, Body: body, Recorder: rec,
			Classes: []drive.Class{{Sender: slow}, {Sender: slow, MaxInFlight: 4}}, ClassOf: p.ClassOf,
		})
		if err != nil {
			t.Fatal(err)
		}
		var got [2]map[wire.Outcome]int
		for _, q := range rec.requests {
			if q.Window != record.Measure {
				continue
			}
			if got[q.Class] == nil {
				got[q.Class] = map[wire.Outcome]int{}
			}
			got[q.Class][q.Result.Outcome]++
		}
		equal(t, "high", got[0], map[wire.Outcome]int{wire.OK: 50})
		if low := got[1]; low[wire.Dropped] == 0 || low[wire.OK]+low[wire.Dropped] != 50 {
			t.Errorf("low: %v", low)
		}
		equal(t, "every request that was sent returned", rec.returned, rec.sent)
	})
}

// In a closed loop the classes have their shares, and each goes by its own sender.
func TestMixInAClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &classTape{tape: newTape()}
		p := &plan.Plan{Classes: []plan.Class{{Weight: 3}, {Weight: 1}}}
		failing := fake{service: time.Second, outcome: func(int) wire.Outcome { return wire.ServerError }}
		_, err := drive.Closed{Concurrency: 2}.Drive(t.Context(), drive.Step{
			Bounds: plan.Step{Requests: 80}, Body: body, Recorder: rec,
			Classes: []drive.Class{{Sender: fake{service: time.Second}}, {Sender: failing}}, ClassOf: p.ClassOf,
		})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "measured", rec.counts()[record.Measure], map[wire.Outcome]int{wire.OK: 60, wire.ServerError: 20})
		for _, q := range rec.requests {
			if (q.Class == 1) != (q.Result.Outcome == wire.ServerError) {
				t.Fatalf("a request of class %d went by the other sender", q.Class)
			}
		}
	})
}

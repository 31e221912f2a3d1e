package gpu

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"
)

// maxEvents bounds the events that one cycle takes.
const maxEvents = 256

// openEvents begins to listen for XID errors. A driver that has no events has no XID series.
func (w *worker) openEvents(ctx context.Context) {
	w.registered = map[string]bool{}
	var events Events
	var ret Return
	if !w.drive(ctx, "nvmlEventSetCreate", func() { events, ret = w.Driver.Events() }) {
		return
	}
	if ret != Success {
		w.fail("nvmlEventSetCreate", "", ret)
		return
	}
	w.events = events
}

// drainEvents counts the errors since the last cycle. The driver keeps them until they are taken.
func (w *worker) drainEvents(ctx context.Context) {
	if w.events == nil {
		return
	}
	var taken []XID
	var ret Return
	events := w.events
	if !w.drive(ctx, "nvmlEventSetWait", func() {
		for len(taken) < maxEvents {
			var x XID
			if x, ret = events.Next(); ret != Success {
				return
			}
			taken = append(taken, x)
		}
	}) {
		return
	}
	if ret != Success && ret != Timeout && !ret.gone() {
		w.fail("nvmlEventSetWait", "", ret)
	}
	for _, x := range taken {
		w.xid(x)
	}
}

func (w *worker) xid(x XID) {
	k := w.xids[x.UUID]
	if k == nil {
		k = &xids{byCode: map[uint64]uint64{}}
		w.xids[x.UUID] = k
	}
	k.total++
	k.last = time.Now()
	if _, ok := k.byCode[x.Code]; ok || len(k.byCode) < maxXIDCodes {
		k.byCode[x.Code]++
	}
	w.Logger.Warn("The NVIDIA driver reported an error", "gpu", x.UUID, "xid", x.Code)
}

// xidReadings are the counters of a GPU. The total is there from the beginning, so that the first
// error is an increase.
func (w *worker) xidReadings(uuid string) []Reading {
	if w.events == nil {
		return nil
	}
	k := w.xids[uuid]
	if k == nil {
		return []Reading{{Quantity: XIDEvents}}
	}
	readings := []Reading{
		{Quantity: XIDEvents, Value: float64(k.total)},
		{Quantity: XIDLast, Value: float64(k.last.UnixMilli()) / 1000},
	}
	for _, code := range slices.Sorted(maps.Keys(k.byCode)) {
		readings = append(readings, Reading{
			Quantity: XIDEventsByCode, Value: float64(k.byCode[code]),
			Labels: [2]string{strconv.FormatUint(code, 10)},
		})
	}
	return readings
}

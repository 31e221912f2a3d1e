package oracle

import "container/heap"

// clock is a virtual time in seconds and what is due in it.
type clock struct {
	now float64
	due events
	n   int
}

type event struct {
	at float64
	n  int // among events of one time, the first to be scheduled comes first
	do func()
}

// at has something done at a time, which may be now.
func (c *clock) at(t float64, do func()) {
	c.n++
	heap.Push(&c.due, event{t, c.n, do})
}

// step does what is due next; false when nothing is.
func (c *clock) step() bool {
	if len(c.due) == 0 {
		return false
	}
	e := heap.Pop(&c.due).(event)
	c.now = max(c.now, e.at)
	e.do()
	return true
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

package drive

import (
	"context"
	"errors"
)

// Idle sends nothing for as long as a step with edges lasts: the part of a shard that has no slot in
// it. The step has its windows and its zeros all the same, so that nobody takes it for missing.
type Idle struct{}

// Drive implements Shape.
func (Idle) Drive(ctx context.Context, step Step) (Summary, error) {
	if step.Edges == nil {
		return Summary{}, errors.New("a step in which nothing is sent needs edges: it would never end")
	}
	s := open(ctx, step, 1)
	<-s.gate.done
	return s.close()
}

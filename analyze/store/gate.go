package store

import (
	"context"
	"fmt"
)

// gate bounds the queries that run at the same time. Prometheus's own tracker does that too, but
// keeps a file of them in the data directory, which a finished run has no use for.
type gate chan struct{}

func newGate(n int) gate { return make(gate, n) }

// GetMaxConcurrent returns how many queries may run at once.
func (g gate) GetMaxConcurrent() int { return cap(g) }

// Insert waits for a free place.
func (g gate) Insert(ctx context.Context, _ string) (int, error) {
	select {
	case g <- struct{}{}:
		return 0, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%d queries are running already: %w", cap(g), ctx.Err())
	}
}

// Delete gives a place back; places are all alike, so the index says nothing.
func (g gate) Delete(int) { <-g }

// Close has nothing to close.
func (gate) Close() error { return nil }

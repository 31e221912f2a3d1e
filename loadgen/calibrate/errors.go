package calibrate

import (
	"math"
	"sync"
	"time"
)

// spread counts errors in buckets that grow by 2 %, from 10 ns to minutes. It is filled by many
// goroutines, a request's at a time, and takes the same memory however long the measurement.
type spread struct {
	mu     sync.Mutex
	counts [1200]int64
	n      int64
	max    time.Duration
}

const (
	spreadFrom   = 10 * time.Nanosecond
	spreadGrowth = 1.02
)

func (s *spread) add(errors ...time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range errors {
		d = max(d, -d)
		i := 0
		if d > spreadFrom {
			i = int(math.Log(float64(d)/float64(spreadFrom)) / math.Log(spreadGrowth))
		}
		s.counts[min(i, len(s.counts)-1)]++
		s.n++
		s.max = max(s.max, d)
	}
}

// Spread is the size of an error, in seconds; quantiles are right to 2 %.
type Spread struct {
	P50 float64 `json:"p50_s"`
	P99 float64 `json:"p99_s"`
	Max float64 `json:"max_s"`
	N   int64   `json:"n"`
}

func (s *spread) sum() Spread {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Spread{P50: s.quantile(0.5), P99: s.quantile(0.99), Max: s.max.Seconds(), N: s.n}
}

func (s *spread) quantile(q float64) float64 {
	rank := int64(math.Ceil(q * float64(s.n)))
	for i := range s.counts {
		if rank -= s.counts[i]; rank <= 0 {
			at := time.Duration(float64(spreadFrom) * math.Pow(spreadGrowth, float64(i+1)))
			return min(at, s.max).Seconds()
		}
	}
	return 0
}

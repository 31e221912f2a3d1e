package calibrate

import (
	"math"
	"sync/atomic"
	"time"
)

// spread counts errors in buckets that grow by 2 %, from 10 ns to minutes. It is filled by many
// goroutines at once and takes the same memory however long the measurement.
type spread struct {
	counts [1200]atomic.Int64
	n, max atomic.Int64
}

const (
	spreadFrom   = 10 * time.Nanosecond
	spreadGrowth = 1.02
)

func (s *spread) add(d time.Duration) {
	d = max(d, -d)
	i := 0
	if d > spreadFrom {
		i = int(math.Log(float64(d)/float64(spreadFrom)) / math.Log(spreadGrowth))
	}
	s.counts[min(i, len(s.counts)-1)].Add(1)
	s.n.Add(1)
	for old := s.max.Load(); int64(d) > old; old = s.max.Load() {
		if s.max.CompareAndSwap(old, int64(d)) {
			return
		}
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
	return Spread{P50: s.quantile(0.5), P99: s.quantile(0.99), Max: time.Duration(s.max.Load()).Seconds(), N: s.n.Load()}
}

func (s *spread) quantile(q float64) float64 {
	rank := int64(math.Ceil(q * float64(s.n.Load())))
	for i := range s.counts {
		if rank -= s.counts[i].Load(); rank <= 0 {
			at := time.Duration(float64(spreadFrom) * math.Pow(spreadGrowth, float64(i+1)))
			return min(at, time.Duration(s.max.Load())).Seconds()
		}
	}
	return 0
}

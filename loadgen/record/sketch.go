package record

import (
	"math"
	"time"
)

// sketch counts durations in 512 buckets that grow by 5 %, from 1 µs up: enough for a progress
// line, in memory that doesn't grow with the run. No verdict reads it.
type sketch struct {
	counts [512]int
	n      int
}

const sketchGrowth = 1.05

func (s *sketch) add(d time.Duration) {
	i := 0
	if d > time.Microsecond {
		i = int(math.Log(float64(d)/float64(time.Microsecond)) / math.Log(sketchGrowth))
	}
	s.counts[min(i, len(s.counts)-1)]++
	s.n++
}

// quantile is the upper edge of the bucket that holds the q-quantile; 0 when nothing was added.
func (s *sketch) quantile(q float64) time.Duration {
	rank := int(math.Ceil(q * float64(s.n)))
	for i, c := range s.counts {
		if rank -= c; c > 0 && rank <= 0 {
			return time.Duration(float64(time.Microsecond) * math.Pow(sketchGrowth, float64(i+1)))
		}
	}
	return 0
}

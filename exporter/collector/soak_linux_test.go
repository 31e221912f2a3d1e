package collector

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Thousands of collections of a whole machine leave heap and goroutines as they were.
func TestSoak(t *testing.T) {
	root := filepath.Join("..", "host", "testdata", "linux-6.18")
	s, err := New(Options{ProcFS: filepath.Join(root, "proc"), SysFS: filepath.Join(root, "sys"), NoGPU: true, Processes: "."})
	if err != nil {
		t.Fatal(err)
	}
	s.add("gpu", newGPU(twoGPUs, func(uint32) string { return "vllm" }))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	collect := func(times int) {
		for range times {
			ch := make(chan prometheus.Metric, 512)
			s.Collect(ch)
			if len(ch) < 100 {
				t.Fatalf("%d metrics", len(ch))
			}
		}
	}
	collect(500)
	before, goroutines := heap(), runtime.NumGoroutine()
	collect(3000)
	if now := runtime.NumGoroutine(); now > goroutines+8 { // some of the last collection may be ending
		t.Errorf("%d goroutines, before %d", now, goroutines)
	}
	if now := heap(); now > before+before/2+256<<10 {
		t.Errorf("heap %d bytes, before %d", now, before)
	}
}

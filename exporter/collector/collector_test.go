package collector

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"firstbreach/exporter/gpu"
	"firstbreach/exporter/host"
	"firstbreach/internal/signal"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// fake is a collector that a test scripts.
type fake func(ch chan<- prometheus.Metric) error

func (f fake) Update(ch chan<- prometheus.Metric) error { return f(ch) }

func (f fake) named(s *Set, name string) *Set { s.add(name, f); return s }

func one(name string) fake {
	m := gauge(name, "A test.")
	return func(ch chan<- prometheus.Metric) error { m.send(ch, 1); return nil }
}

func newSet(t *testing.T, log *slog.Logger) *Set {
	t.Helper()
	s, err := New(Options{NoHost: true, NoGPU: true, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gather returns the value of each series by its text.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values[f.GetName()+labels(m)] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

func labels(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if pairs == nil {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func success(name string) string {
	return fmt.Sprintf("%s{collector=%q}", signal.ScrapeCollectorOK, name)
}

// One collector that fails, or panics, costs its own series.
func TestOneFailingCollector(t *testing.T) {
	var log bytes.Buffer
	s := newSet(t, slog.New(slog.NewTextHandler(&log, nil)))
	one("good").named(s, "good")
	fake(func(ch chan<- prometheus.Metric) error {
		_ = one("partly")(ch)
		return errors.New("the disk is on fire")
	}).named(s, "bad")
	fake(func(chan<- prometheus.Metric) error { panic("no") }).named(s, "broken")
	fake(func(chan<- prometheus.Metric) error { return host.ErrUnsupported }).named(s, "nothing")
	for range 3 {
		got := gather(t, s)
		for series, want := range map[string]float64{"good": 1, "partly": 1, success("good"): 1, success("bad"): 0, success("broken"): 0} {
			if v, ok := got[series]; !ok || v != want {
				t.Errorf("%s = %v (there: %v), want %v", series, v, ok, want)
			}
		}
		if _, ok := got[success("nothing")]; ok {
			t.Error("what a system doesn't have is neither a success nor a failure")
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("%d lines for three collectors with trouble:\n%s", n, log.String())
	}
}

// A collector that hangs costs its own series; what it sends when it comes back goes nowhere.
func TestHangingCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, nil)
		one("good").named(s, "good")
		release := make(chan struct{})
		var calls atomic.Int32
		fake(func(ch chan<- prometheus.Metric) error {
			if calls.Add(1) == 1 {
				<-release
			}
			return one("late")(ch)
		}).named(s, "late")

		begin := time.Now()
		for i := range 100 {
			got := gather(t, s)
			if got["good"] != 1 || got[success("late")] != 0 {
				t.Fatalf("scrape %d: %v", i, got)
			}
		}
		// The first scrape waits its time, the others find it late already.
		if waited := time.Since(begin); waited != DefaultTimeout {
			t.Errorf("100 scrapes took %v, want %v", waited, DefaultTimeout)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d reads begun while one hung", n)
		}
		close(release)
		synctest.Wait()
		if got := gather(t, s); got["late"] != 1 || got[success("late")] != 1 {
			t.Errorf("after it came back: %v", got)
		}
	})
}

// Scrapes that overlap share one read.
func TestOverlappingScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, nil)
		var calls atomic.Int32
		fake(func(ch chan<- prometheus.Metric) error {
			calls.Add(1)
			time.Sleep(time.Second)
			return one("slow")(ch)
		}).named(s, "slow")
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() {
				if got := gather(t, s); got["slow"] != 1 {
					t.Errorf("got %v", got)
				}
			})
		}
		wait.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d reads for scrapes at the same time, want 1", n)
		}
	})
}

func TestCPUNeverRunsBackwards(t *testing.T) {
	times := []host.CPUTime{
		{CPU: "0", Idle: 100, IOWait: 10, User: 5},
		{CPU: "0", Idle: 99.5, IOWait: 9, User: 6}, // a small step back is held
		{CPU: "0", Idle: 101, IOWait: 9.5, User: 7},
		{CPU: "0", Idle: 1, IOWait: 0.5, User: 0.25}, // taken out and put back
		{CPU: "0", Idle: 2, IOWait: 1, User: 1},
	}
	want := []host.CPUTime{
		{Idle: 100, IOWait: 10, User: 5},
		{Idle: 100, IOWait: 10, User: 6},
		{Idle: 101, IOWait: 10, User: 7},
		{Idle: 1, IOWait: 0.5, User: 0.25},
		{Idle: 2, IOWait: 1, User: 1},
	}
	c := newCPU(&host.Reader{})
	i := 0
	c.read = func() (host.CPU, error) { return host.CPU{Times: times[i : i+1]}, nil }
	s := newSet(t, nil)
	s.add("cpu", c)
	for i = range times {
		got := gather(t, s)
		for mode, v := range map[string]float64{"idle": want[i].Idle, "iowait": want[i].IOWait, "user": want[i].User} {
			series := fmt.Sprintf(`%s{cpu="0",mode=%q}`, signal.HostCPUSeconds, mode)
			if got[series] != v {
				t.Errorf("scrape %d: %s = %v, want %v", i, series, got[series], v)
			}
		}
	}
}

// A CPU that was taken out and comes back begins anew, whatever it had.
func TestCPUTakenOut(t *testing.T) {
	c := newCPU(&host.Reader{})
	reads := [][]host.CPUTime{
		{{CPU: "0", Idle: 5}, {CPU: "1", Idle: 2}},
		{{CPU: "0", Idle: 6}},
		{{CPU: "0", Idle: 7}, {CPU: "1", Idle: 1}},
	}
	i := 0
	c.read = func() (host.CPU, error) { return host.CPU{Times: reads[i]}, nil }
	s := newSet(t, nil)
	s.add("cpu", c)
	for i = range reads {
		series := signal.HostCPUSeconds + `{cpu="1",mode="idle"}`
		v, ok := gather(t, s)[series]
		if want := len(reads[i]) == 2; ok != want || ok && v != reads[i][1].Idle {
			t.Errorf("scrape %d: %v, %v", i, v, ok)
		}
	}
}

func TestTimeoutOfScrape(t *testing.T) {
	const usual = 7 * time.Second
	for header, want := range map[string]time.Duration{
		"":     usual,
		"1":    800 * time.Millisecond,
		"10":   9500 * time.Millisecond,
		"0.5":  400 * time.Millisecond,
		"-1":   usual,
		"0":    usual,
		"NaN":  usual,
		"soon": usual,
		"1e99": time.Hour - 500*time.Millisecond,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set(scrapeTimeoutHeader, header)
		if got := timeout(r, 0, usual); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set(scrapeTimeoutHeader, "10")
	for offset, want := range map[time.Duration]time.Duration{-1: 10 * time.Second, time.Second: 9 * time.Second, time.Minute: 8 * time.Second} {
		if got := timeout(r, offset, usual); got != want {
			t.Errorf("less %v: %v, want %v", offset, got, want)
		}
	}
}

func get(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w
}

// A series that can't be exported costs itself, not the page.
func TestBadSeries(t *testing.T) {
	s := newSet(t, nil)
	one("good").named(s, "good")
	bad := gauge("bad", "A test.", "name")
	fake(func(ch chan<- prometheus.Metric) error {
		bad.send(ch, 1, "\xff")
		bad.send(ch, 2, "fine")
		bad.send(ch, 3, "fine")
		return nil
	}).named(s, "bad")
	w := get(Handler(s, HandlerOptions{}))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	page := w.Body.String()
	for _, line := range []string{"good 1\n", `bad{name="fine"}`, success("good") + " 1\n"} {
		if !strings.Contains(page, line) {
			t.Errorf("the page lacks %q:\n%s", line, page)
		}
	}
}

func TestTooManyScrapes(t *testing.T) {
	s := newSet(t, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	fake(func(chan<- prometheus.Metric) error {
		entered <- struct{}{}
		<-release
		return nil
	}).named(s, "slow")
	h := Handler(s, HandlerOptions{MaxRequests: 1})
	first := make(chan int)
	go func() { first <- get(h).Code }()
	<-entered
	if code := get(h).Code; code != http.StatusServiceUnavailable {
		t.Errorf("the second scrape got %d, want 503", code)
	}
	close(release)
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first scrape got %d", code)
	}
}

func TestAlso(t *testing.T) {
	also := prometheus.NewRegistry()
	also.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "mine", Help: "A test."}))
	w := get(Handler(newSet(t, nil), HandlerOptions{Also: also}))
	if !strings.Contains(w.Body.String(), "\nmine 0\n") {
		t.Errorf("the page: %s", w.Body)
	}
}

// nvml is a driver without GPUs that counts how often it is asked.
type nvml struct {
	gpu.Driver
	asked atomic.Int64
}

func (d *nvml) Init() gpu.Return                 { return gpu.Success }
func (d *nvml) Shutdown() gpu.Return             { return gpu.Success }
func (d *nvml) Version() (string, gpu.Return)    { return "610.57", gpu.Success }
func (d *nvml) Count() (int, gpu.Return)         { d.asked.Add(1); return 0, gpu.Success }
func (d *nvml) Events() (gpu.Events, gpu.Return) { return nil, gpu.NotSupported }

// However many scrapes there are, the driver is asked once for each interval.
func TestScrapeStorm(t *testing.T) {
	asked := func(scrapers int) int64 {
		d := &nvml{}
		synctest.Test(t, func(t *testing.T) {
			s, err := New(Options{NoHost: true, GPU: gpu.Options{Driver: d}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			h := Handler(s, HandlerOptions{})
			for range 20 {
				var wait sync.WaitGroup
				for range scrapers {
					wait.Go(func() {
						if code := get(h).Code; code != http.StatusOK {
							t.Errorf("status %d", code)
						}
					})
				}
				wait.Wait()
				time.Sleep(time.Second)
			}
		})
		return d.asked.Load()
	}
	if none, storm := asked(0), asked(50); none != storm {
		t.Errorf("asked %d times without scrapers, %d times with 50 in parallel", none, storm)
	}
}

// Disk counters pass as the kernel has them, also when one wraps: PromQL takes that for a reset.
func TestDiskCountersPass(t *testing.T) {
	c := newDisk(&host.Reader{})
	bytes := uint64(1 << 40)
	c.read = func() ([]host.Disk, error) {
		return []host.Disk{{Device: "nvme0n1", Reads: host.IO{Bytes: bytes}}}, nil
	}
	s := newSet(t, nil)
	s.add("disk", c)
	for _, bytes = range []uint64{1 << 40, 512, 1024} {
		if got := gather(t, s)[signal.HostDiskReadBytes+`{device="nvme0n1"}`]; got != float64(bytes) {
			t.Errorf("got %v, want %d", got, bytes)
		}
	}
}

// A scrape can ask for some collectors, or for all but some.
func TestCollect(t *testing.T) {
	s := newSet(t, nil)
	one("first").named(s, "first")
	one("second").named(s, "second")
	h := Handler(s, HandlerOptions{})
	for _, c := range []struct {
		query         string
		status        int
		first, second bool
	}{
		{"", 200, true, true},
		{"?collect[]=first", 200, true, false},
		{"?collect[]=first&collect[]=second", 200, true, true},
		{"?exclude[]=first", 200, false, true},
		{"?collect[]=first&exclude[]=second", 400, false, false},
		{"?collect[]=third", 400, false, false},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics"+c.query, nil))
		page := w.Body.String()
		if w.Code != c.status || strings.Contains(page, "\nfirst 1") != c.first || strings.Contains(page, "\nsecond 1") != c.second {
			t.Errorf("%s: status %d:\n%s", c.query, w.Code, page)
		}
	}
}

// Every collector can be left out, and what can't be used is an error, never a panic.
func TestOptions(t *testing.T) {
	s, err := New(Options{NoGPU: true, Off: []string{"cpu", "info"}})
	if err != nil {
		t.Fatal(err)
	}
	got := gather(t, s)
	if _, ok := got[success("cpu")]; ok || got[success("memory")] != 1 {
		t.Errorf("got %v", got)
	}
	for _, o := range []Options{
		{DiskInclude: "("}, {DiskExclude: "["}, {Processes: "*"}, {DiskInclude: "a", DiskExclude: "b"}, {Off: []string{"none"}},
	} {
		o.NoGPU = true
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestNewFails(t *testing.T) {
	_, err := New(Options{ProcFS: t.TempDir() + "/none", NoGPU: true})
	if err == nil || !strings.Contains(err.Error(), "/none") {
		t.Errorf("error = %v", err)
	}
}

// A real machine, GPU or not, always has its page; what is embedded is what the binary serves.
func TestThisMachine(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := gather(t, s)
	if got[success("cpu")] != 1 || got[success("memory")] != 1 || got[success("gpu")] != 1 {
		t.Errorf("got %v", got)
	}
	if _, ok := got[signal.NVMLUp]; !ok {
		t.Errorf("%s is not there", signal.NVMLUp)
	}
}

// text renders families as a page.
func text(t *testing.T, families []*dto.MetricFamily) string {
	t.Helper()
	var page bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&page, f); err != nil {
			t.Fatal(err)
		}
	}
	return page.String()
}

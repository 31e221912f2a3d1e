package standalone

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/report"
	"firstbreach/analyze/store"
	"firstbreach/analyze/verdict"
	"firstbreach/loadgen/sim"
)

const slowScrapes = 500 * time.Millisecond

// TestOtherStores has one run scraped by the embedded Prometheus and, beside it, by one that knows no
// native histograms, by one that drops the classic buckets and, where they are installed, by a Prometheus of
// 2023 and by VictoriaMetrics, another engine altogether. Those with the buckets give the same verdict; the one without names the setting.
func TestOtherStores(t *testing.T) {
	inRealTime(t)
	cfg := sim.Default()
	cfg.Slots, cfg.PrefillTime, cfg.StepBase = 2, pace*30*time.Millisecond, pace*5*time.Millisecond
	base := startEngine(t, cfg)
	loadgen, exporter := freeAddress(t), freeAddress(t)
	pages := []store.Target{
		{Job: "loadgen", URL: "http://" + loadgen + "/metrics"},
		{Job: "exporter", URL: "http://" + exporter + "/metrics", Labels: map[string]string{"role": "target"}},
		{Job: "engine", URL: base + "/metrics"},
	}
	others := map[string]string{
		"without native histograms": openStore(t, store.Options{Targets: pages, NoNativeHistograms: true}),
		"without classic buckets":   openStore(t, store.Options{Targets: pages, NoClassicHistograms: true}),
	}
	if real := startPrometheus(t, pages); real != "" {
		others["Prometheus 2"] = real
	}
	if real := startVictoriaMetrics(t, pages); real != "" {
		others["VictoriaMetrics"] = real
	}
	work := t.TempDir()
	dir := filepath.Join(work, "run")
	// Up to five scrapers on two busy cores: the slower the scrapes, the fewer are late.
	plan := strings.Replace(scenarioPlan(base, []int{1, 2, 4}), "min_duration: 1200ms", "min_duration: 3s", 1)
	out, err := Run(t.Context(), Options{
		PlanFile: writeFile(t, work, "plan.yaml", plan), SLOFile: writeFile(t, work, "slo.yaml", scenarioSLO()),
		Dir: dir, LoadgenAddress: loadgen, ExporterAddress: exporter, ScrapeInterval: slowScrapes,
	})
	if err != nil {
		t.Fatal(err)
	}
	if b := out.Report.FirstBreach; b == nil || b.Concurrency != 4 {
		t.Fatalf("embedded: %q", out.Report.Headline())
	}
	src, err := analysis.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, url := range others {
		t.Run(name, func(t *testing.T) {
			doc, res := analyse(t, src, url)
			if name == "without classic buckets" {
				checkNamesSetting(t, doc, res)
				return
			}
			sameVerdict(t, out.Report, doc)
			// Without the run directory the steps are found in Prometheus alone.
			bare, _ := analyse(t, analysis.Source{RunID: src.RunID, SLO: src.SLO}, url)
			sameVerdict(t, out.Report, bare)
			if s := check(bare, "manifest"); s != verdict.NotChecked {
				t.Errorf("without a manifest its check reads %s", s)
			}
		})
	}
}

func analyse(t *testing.T, src analysis.Source, url string) (*report.Document, verdict.Result) {
	t.Helper()
	doc, res, err := analysis.Run(t.Context(), analysis.Options{Source: src, Prometheus: analysis.Prometheus{URL: url}})
	if err != nil {
		t.Fatal(err)
	}
	return doc, res
}

func sameVerdict(t *testing.T, want, got *report.Document) {
	t.Helper()
	if got.State != want.State || got.FirstBreach == nil {
		t.Fatalf("state %s, want %s: %q", got.State, want.State, got.Headline())
	}
	if a, b := got.Headline()[0], want.Headline()[0]; a != b {
		t.Errorf("%s\nwant %s", a, b)
		for _, c := range got.Validity {
			if c.Status != verdict.Passed {
				t.Logf("%s: %s: %s", c.Name, c.Status, c.Detail)
			}
		}
	}
}

func checkNamesSetting(t *testing.T, doc *report.Document, res verdict.Result) {
	t.Helper()
	text := strings.Join(doc.Headline(), " ")
	if res.State == verdict.Breach || res.State == verdict.None || !strings.Contains(text, "always_scrape_classic_histograms: true") {
		t.Errorf("state %s: %s", res.State, text)
	}
}

func check(doc *report.Document, name string) verdict.Status {
	for _, c := range doc.Validity {
		if c.Name == name {
			return c.Status
		}
	}
	return ""
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", freePort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func openStore(t *testing.T, o store.Options) string {
	t.Helper()
	o.Dir, o.ScrapeInterval = filepath.Join(t.TempDir(), "data"), slowScrapes
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}

// startPrometheus starts an installed Prometheus; "" where there is none.
func startPrometheus(t *testing.T, pages []store.Target) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	return startScraper(t, "prometheus", address, "--config.file="+scrapeConfig(t, dir, pages),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
}

// startVictoriaMetrics starts an installed VictoriaMetrics; "" where there is none. It hides the newest
// 30 s unless told otherwise, and the run is analysed as soon as it ends.
func startVictoriaMetrics(t *testing.T, pages []store.Target) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	return startScraper(t, "victoria-metrics", address, "-promscrape.config="+scrapeConfig(t, dir, pages),
		"-storageDataPath="+filepath.Join(dir, "data"), "-httpListenAddr="+address, "-search.latencyOffset=0")
}

func scrapeConfig(t *testing.T, dir string, pages []store.Target) string {
	t.Helper()
	config := "global: {scrape_interval: 500ms, scrape_timeout: 500ms}\nscrape_configs:\n"
	for _, p := range pages {
		labels := ""
		if role := p.Labels["role"]; role != "" {
			labels = ", labels: {role: " + role + "}"
		}
		host := strings.TrimSuffix(strings.TrimPrefix(p.URL, "http://"), "/metrics")
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: [%q]%s}]}\n", p.Job, host, labels)
	}
	return writeFile(t, dir, "prometheus.yml", config)
}

// startScraper starts an installed program that scrapes and answers PromQL at address, and returns its
// URL once it scrapes; "" where the program isn't there.
func startScraper(t *testing.T, name, address string, args ...string) string {
	t.Helper()
	binary, err := exec.LookPath(name)
	if err != nil {
		t.Logf("no %s is installed: not compared with a real one", name)
		return ""
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	url := "http://" + address
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	// It is ready some seconds before it scrapes its first target.
	for !scrapes(ctx, url) {
		if ctx.Err() != nil {
			stop() // the log is its own until it ends
			t.Fatalf("%s did not begin to scrape: %s", name, log.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
	return url
}

// scrapes reports whether the store at url has scraped the engine, the one page that is there already.
func scrapes(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/query?query=up%7Bjob%3D%22engine%22%7D", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return bytes.Contains(body, []byte(`"job":"engine"`))
}

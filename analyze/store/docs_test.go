package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
)

// The configurations in the documentation load, the second one also in an old Prometheus where one
// is installed.
func TestDocumentedConfigurationsLoad(t *testing.T) {
	doc, err := os.ReadFile("../../docs/store.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(doc), "```yaml\n")
	if len(parts) != 3 {
		t.Fatalf("%d YAML blocks, want 2", len(parts)-1)
	}
	for i, part := range parts[1:] {
		text, _, _ := strings.Cut(part, "```")
		cfg, err := config.Load(text, promslog.NewNopLogger())
		if err != nil {
			t.Fatalf("block %d: %v", i+1, err)
		}
		scrapes, err := cfg.GetScrapeConfigs()
		if err != nil {
			t.Fatalf("block %d: %v", i+1, err)
		}
		modern := i == 0
		for _, sc := range scrapes {
			if *sc.ScrapeNativeHistograms != modern || *sc.AlwaysScrapeClassicHistograms != modern {
				t.Errorf("block %d, job %s: native %v, classic %v; want both %v", i+1, sc.JobName, *sc.ScrapeNativeHistograms, *sc.AlwaysScrapeClassicHistograms, modern)
			}
		}
		if !modern {
			checkWithPromtool(t, text)
		}
	}
}

func checkWithPromtool(t *testing.T, text string) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("no promtool here: checked with the built-in Prometheus alone")
		return
	}
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "config", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

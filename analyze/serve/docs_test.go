package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file that the documentation shows loads as it is, and says what is written beside it.
func TestDocumentedFile(t *testing.T) {
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no YAML in docs/serve.md")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "slo.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"serve.yaml": text, "token": "x", "slo.yaml": fmt.Sprintf(sloText, "chat"), "slo.d/a.yaml": fmt.Sprintf(sloText, "code")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(filepath.Join(dir, "serve.yaml"), start())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.SLO) != 2 || len(c.Schedules) != 2 || len(c.Webhooks) != 1 || c.Grafana == nil || c.Schedules[1].Keep != 52*7*24*3600e9 {
		t.Errorf("%+v", c)
	}
	for _, r := range reasons() {
		if !strings.Contains(string(page), "`"+r+"`") {
			t.Errorf("reason %s isn't in the documentation", r)
		}
	}
}

package signal

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/metrics.md has every metric of ours and no other.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`((?:loadgen|host|nvidia_gpu|nvml|exporter)_[a-z0-9_]+)").FindAllStringSubmatch(string(page), -1) {
		documented[name[1]] = true
	}
	ours := map[string]bool{"exporter_build_info": true} // client_golang's own
	for _, name := range ownNames(t) {
		ours[name] = true
		if !documented[name] {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
	}
	for name := range documented {
		if !ours[name] && !strings.HasSuffix(name, "_") {
			t.Errorf("docs/metrics.md has %s, which is not exported", name)
		}
	}
}

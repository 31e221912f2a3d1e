package slo

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxUID is the greatest length of a uid that Grafana takes.
const maxUID = 40

// DashboardUID is the stable uid of the service's dashboard: the same however often it is generated,
// and known to what links there.
func (f *File) DashboardUID() string { return uid("firstbreach-slo-" + f.Service) }

// LoadTestUID is the stable uid of the dashboard of the service's load tests.
func (f *File) LoadTestUID() string { return uid("firstbreach-loadtest-" + f.Service) }

// uid shortens a name that Grafana wouldn't take, and keeps different ones apart.
func uid(name string) string {
	if len(name) <= maxUID {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxUID-9] + "-" + hex.EncodeToString(sum[:4])
}

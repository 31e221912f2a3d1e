package slo

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxUID is the greatest length of a uid that Grafana takes.
const maxUID = 40

// DashboardUID is the stable uid of the service's dashboard: the same however often it is generated,
// and known to what links there.
func (f *File) DashboardUID() string {
	uid := "firstbreach-slo-" + f.Service
	if len(uid) <= maxUID {
		return uid
	}
	sum := sha256.Sum256([]byte(f.Service))
	return uid[:maxUID-9] + "-" + hex.EncodeToString(sum[:4])
}

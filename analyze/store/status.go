package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/notifications"
	apiv1 "github.com/prometheus/prometheus/web/api/v1"
)

// The Prometheus that is built in. Its library version 0.3xx.y belongs to release 3.xx.y; clients
// such as Grafana choose their features by the release.
const (
	libraryVersion    = "v0.316.0"
	prometheusVersion = "3.16.0"
)

// errReadOnlyAPI is what the administration endpoints would answer, were they switched on.
var errReadOnlyAPI = errors.New("the store changes no data over HTTP")

// dbStatus tells the API about the data directory.
type dbStatus struct {
	db    *tsdb.DB
	stats *tsdb.DBStats
}

func (d dbStatus) Stats(label string, limit int) (*tsdb.Stats, error) {
	return d.db.Head().Stats(label, limit), nil
}

func (d dbStatus) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return d.stats.Head.WALReplayStatus.GetWALReplayStatus(), nil
}

func (d dbStatus) BlockMetas() ([]tsdb.BlockMeta, error) { return d.db.BlockMetas(), nil }

func (dbStatus) CleanTombstones() error { return errReadOnlyAPI }

func (dbStatus) Delete(context.Context, int64, int64, ...*labels.Matcher) error {
	return errReadOnlyAPI
}

func (dbStatus) Snapshot(string, bool) error { return errReadOnlyAPI }

// noAlertmanagers: the store notifies nobody.
type noAlertmanagers struct{}

func (noAlertmanagers) Alertmanagers() []*url.URL        { return []*url.URL{} }
func (noAlertmanagers) DroppedAlertmanagers() []*url.URL { return []*url.URL{} }

// noNotifications: the store has no user interface to show any in.
func noNotifications() []notifications.Notification { return []notifications.Notification{} }

// noNotificationFeed refuses a subscription, which the API answers with "no content".
func noNotificationFeed() (<-chan notifications.Notification, func(), bool) {
	return nil, func() {}, false
}

func buildInfo() *apiv1.PrometheusVersion {
	return &apiv1.PrometheusVersion{
		Version:   prometheusVersion,
		Revision:  libraryVersion,
		BuildUser: "firstbreach",
		GoVersion: runtime.Version(),
	}
}

func (s *Store) runtimeInfo() (apiv1.RuntimeInfo, error) {
	dir, err := os.Getwd()
	if err != nil {
		return apiv1.RuntimeInfo{}, fmt.Errorf("runtime info: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return apiv1.RuntimeInfo{}, fmt.Errorf("runtime info: %w", err)
	}
	info := apiv1.RuntimeInfo{
		StartTime: s.started.UTC(), ServerTime: time.Now().UTC(),
		CWD: dir, Hostname: host,
		ReloadConfigSuccess: true, LastConfigTime: s.started.UTC(),
		GoroutineCount: runtime.NumGoroutine(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		GOMEMLIMIT: debug.SetMemoryLimit(-1), GOGC: os.Getenv("GOGC"), GODEBUG: os.Getenv("GODEBUG"),
	}
	if s.opts.Retention > 0 {
		info.StorageRetention = promDuration(s.opts.Retention)
	}
	if info.CorruptionCount, err = s.corruptions(); err != nil {
		return apiv1.RuntimeInfo{}, err
	}
	return info, nil
}

// corruptions counts the damaged places found in the write-ahead log.
func (s *Store) corruptions() (int64, error) {
	families, err := s.registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("runtime info: %w", err)
	}
	for _, f := range families {
		if f.GetName() == "prometheus_tsdb_wal_corruptions_total" && len(f.GetMetric()) == 1 {
			return int64(f.GetMetric()[0].GetCounter().GetValue()), nil
		}
	}
	return 0, nil
}

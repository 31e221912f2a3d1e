package query

import (
	"testing"

	"github.com/prometheus/common/model"
)

// What VictoriaMetrics and Prometheus answer to time(): the first has its latency offset taken off the
// value, which says nothing about its clock.
func TestClockIsTheTimeOfTheAnswer(t *testing.T) {
	for name, v := range map[string]model.Value{
		"VictoriaMetrics": model.Vector{{Metric: model.Metric{}, Timestamp: 1796559549_000, Value: 1796559519.295}},
		"Prometheus":      &model.Scalar{Timestamp: 1796559549_000, Value: 1796559549},
	} {
		if got, err := (answer{value: v}).askedAt(); err != nil || got != 1796559549 {
			t.Errorf("%s: asked at %v (%v)", name, got, err)
		}
	}
	if _, err := (answer{value: model.Vector{}}).askedAt(); err == nil {
		t.Error("an empty answer has a time")
	}
}

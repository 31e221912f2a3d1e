package boards

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"firstbreach/dashboards/board"
	"firstbreach/internal/promexpr"
	"firstbreach/internal/signal"
	"firstbreach/internal/slo"
)

// The tests of this file stand in docs/reported.md: what users of other dashboards ran into.

// Models are listed of a metric that only the engine has, of the chosen jobs: other exporters have a
// label model_name as well, for a disk or a board.
func TestModelsAreThoseOfTheEngine(t *testing.T) {
	seen := 0
	for _, b := range everyBoard(t) {
		for _, v := range b.Variables {
			if v.Name != "model" {
				continue
			}
			seen++
			inner, ok := strings.CutPrefix(v.Query, "label_values(")
			metric, label, two := strings.Cut(strings.TrimSuffix(inner, ")"), ", ")
			if !ok || !two {
				t.Fatalf("%s: models are %s: without a metric, every exporter's count", b.UID, v.Query)
			}
			e, err := promexpr.Parse(metric)
			if err != nil {
				t.Fatalf("%s: %s: %v", b.UID, v.Query, err)
			}
			selector := e.(*parser.VectorSelector)
			engine, err := signal.Lookup(strings.TrimPrefix(strings.TrimPrefix(b.UID, "firstbreach-slo-of-"), "firstbreach-loadtest-of-"))
			if err != nil {
				t.Fatal(err)
			}
			if own := engine.Candidates(signal.SignalRequestsRunning)[0].Name; selector.Name != own || label != "model_name" {
				t.Errorf("%s: models are %s, want those of %s", b.UID, v.Query, own)
			}
			if !narrowed(selector, "job", "$job") {
				t.Errorf("%s: models are %s, of every job", b.UID, v.Query)
			}
		}
	}
	if seen == 0 {
		t.Error("no board has a variable for the model")
	}
}

func narrowed(s *parser.VectorSelector, label, value string) bool {
	for _, m := range s.LabelMatchers {
		if m.Name == label && m.Type == labels.MatchRegexp && m.Value == value {
			return true
		}
	}
	return false
}

// Other objectives give the same uid and title: the dashboard is replaced, and links to it stay good.
func TestUIDStaysWhenObjectivesChange(t *testing.T) {
	before := shipped(t)
	after := shipped(t)
	after.Objectives = after.Objectives[:1]
	after.Objectives[0].Name = "first-token"
	for name, boardOf := range map[string]func(*slo.File) (board.Board, error){"service": Service, "load test": LoadTest} {
		a, err := boardOf(before)
		if err != nil {
			t.Fatal(err)
		}
		b, err := boardOf(after)
		if err != nil {
			t.Fatal(err)
		}
		if a.UID != b.UID || a.Title != b.Title {
			t.Errorf("%s: uid %q and title %q became %q and %q", name, a.UID, a.Title, b.UID, b.Title)
		}
	}
}

package verdict

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// drawRun draws a run of one to four steps with one to five rounds each, some of them spoilt.
func drawRun(t *rapid.T) Run {
	ladder := []int{1, 2, 4, 8}[:rapid.IntRange(1, 4).Draw(t, "steps")]
	rounds := rapid.IntRange(1, 5).Draw(t, "rounds")
	run := ladderRun(nil, ladder...)
	run.Rounds = rounds
	run.Objectives = append(run.Objectives, Objective{Name: "success", Kind: "success", Target: "0.99", Owner: "o"},
		Objective{Name: "capacity", Kind: "capacity", MinConcurrency: 2})
	for _, c := range ladder {
		for round := range rounds {
			n := rapid.Int64Range(0, 200).Draw(t, "total")
			k := rapid.Int64Range(0, n).Draw(t, "bad")
			s := goodStep(PhaseRamp, round+1, c, k, n)
			s.Counts["success"] = Count{Total: n, Failed: rapid.Int64Range(0, n).Draw(t, "failed")}
			if rapid.IntRange(0, 9).Draw(t, "spoilt") == 0 {
				s.End = nil
			}
			run.Steps = append(run.Steps, s)
		}
	}
	return run
}

func TestOrderOfStepsMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawRun(t)
		want := Judge(run)
		run.Steps = rapid.Permutation(run.Steps).Draw(t, "order")
		if got := Judge(run); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\n%+v", got, want)
		}
	})
}

func TestJudgeLeavesTheRunAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawRun(t)
		if a, b := Judge(run), Judge(run); !reflect.DeepEqual(a, b) {
			t.Fatal("two judgements of one run differ")
		}
	})
}

// More bad requests in any round never turn a breach, nor anything else, into an ok.
func TestMoreBadNeverMendsAStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rounds := rapid.IntRange(3, 5).Draw(t, "rounds")
		run, worse := ladderRun(nil, 1), ladderRun(nil, 1)
		for r := range rounds {
			n := rapid.Int64Range(1, 300).Draw(t, "total")
			k := rapid.Int64Range(0, n).Draw(t, "bad")
			run.Steps = append(run.Steps, goodStep(PhaseRamp, r+1, 1, k, n))
			worse.Steps = append(worse.Steps, goodStep(PhaseRamp, r+1, 1, rapid.Int64Range(k, n).Draw(t, "more"), n))
		}
		before, after := Judge(run).Steps[0].Verdict, Judge(worse).Steps[0].Verdict
		if before == Breach && after == OK {
			t.Fatal("more bad requests turned a breach into an ok")
		}
	})
}

func TestNumbersAreNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Judge(drawRun(t))
		for _, s := range r.Steps {
			for _, o := range s.Objectives {
				for _, v := range []*float64{o.Share, o.POK, o.PBreach, o.PBreachAdj, o.Isotonic, &o.Dispersion, &o.EffectiveN} {
					if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
						t.Fatalf("%+v", o)
					}
				}
				if o.CI != nil && !(0 <= o.CI[0] && o.CI[0] <= *o.Share && *o.Share <= o.CI[1] && o.CI[1] <= 1) {
					t.Fatalf("interval %v of share %v", *o.CI, *o.Share)
				}
				if o.Verdict == OK && o.RoundsOver > 0 || o.Verdict == Breach && 3*o.RoundsOver < 2*len(o.Rounds) {
					t.Fatalf("%s with %d of %d rounds over", o.Verdict, o.RoundsOver, len(o.Rounds))
				}
			}
		}
		if b := r.FirstBreach; b != nil && b.LastOK != nil && *b.LastOK >= b.Concurrency {
			t.Fatalf("%+v", b)
		}
	})
}

package verdict

import (
	"strings"
	"testing"
)

// TestLateReadsVoidWhereTheyDecide: values that the client read too late to tell count as slow; where
// the verdict would be another one without them, the rounds that have them are void.
func TestLateReadsVoidWhereTheyDecide(t *testing.T) {
	for _, tt := range []struct {
		name  string
		slow  []int64
		late  []int64
		want  State
		valid int
		check Status
	}{
		{"all in time", []int64{0, 0, 0}, []int64{0, 0, 0}, OK, 3, ""},
		{"ok either way", []int64{1, 0, 0}, []int64{1, 0, 0}, OK, 3, Warn},
		{"breach either way", []int64{40, 40, 40}, []int64{2, 2, 2}, Breach, 3, Warn},
		{"ok or breach", []int64{20, 20, 20}, []int64{20, 20, 20}, Invalid, 0, Failed},
		{"inconclusive or breach", []int64{20, 20, 20}, []int64{15, 15, 15}, Invalid, 0, Failed},
		{"one round decides it", []int64{0, 0, 20}, []int64{0, 0, 20}, Inconclusive, 2, Failed},
		{"late without being slow for it", []int64{0, 0, 0}, []int64{0, 0, 0}, OK, 3, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := ladderRun(map[int][]int64{8: tt.slow}, 8)
			for i := range run.Steps {
				c := run.Steps[i].Counts["ttft"]
				c.Late = tt.late[i]
				run.Steps[i].Counts["ttft"] = c
			}
			result := Judge(run)
			s := result.Step(PhaseRamp, 8)
			if s.Verdict != tt.want || s.ValidRounds != tt.valid {
				t.Errorf("%s with %d valid rounds, want %s with %d (%v)", s.Verdict, s.ValidRounds, tt.want, tt.valid, s.Reasons)
			}
			for i, r := range s.Rounds {
				var found Status
				for _, c := range r.Checks {
					if c.Name == checkLate {
						found = c.Status
					}
				}
				want := tt.check
				if tt.late[i] == 0 {
					want = ""
				}
				if found != want {
					t.Errorf("round %d: check %q, want %q", r.Round, found, want)
				}
			}
			if tt.want == Invalid && !strings.Contains(strings.Join(s.Reasons, "; "), "read late") {
				t.Errorf("reasons %v", s.Reasons)
			}
		})
	}
}

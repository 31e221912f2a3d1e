package oracle

import (
	"os"
	"strconv"
	"testing"
)

func TestTry(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("RUNS"))
	s := Study{Scenarios: Scenarios(), Runs: max(runs, 1), Seed: 1, Truth: 100_000}
	if err := s.Run(t.Context(), func(n, of int) {}); err != nil {
		t.Fatal(err)
	}
	_ = s.Write(os.Stdout)
	for i, trials := range s.Trials {
		for _, tr := range trials {
			for _, st := range tr.Steps {
				if !st.decided() || tr.FalseOK || tr.FalseBreach {
					t.Log(s.Scenarios[i].Name, tr.Seed, st.Concurrency, st.True.Worst(), st.Said, st.Why)
				}
			}
		}
	}
}

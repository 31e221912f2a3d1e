package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/term"

	"firstbreach/analyze/oracle"
	"firstbreach/analyze/standalone"
)

func addKnownAnswers(app *kingpin.Application) (string, command) {
	cmd := app.Command("known-answers", "Check the verdict against services whose first breach is known: runs in virtual time, whose samples go through a Prometheus store, "+
		"its queries and the verdict like any run's. Takes some minutes, sends nothing and writes nothing but temporary files.")
	runs := cmd.Flag("runs", "Runs of each scenario, each with a seed of its own.").Default("12").Int()
	seed := cmd.Flag("seed", "Of the first run.").Default("1").Uint64()
	truth := cmd.Flag("truth-requests", "How many requests stand behind a true share that has no formula.").Default("200000").Int()
	names := cmd.Flag("scenario", "Only this scenario; may be repeated.").PlaceHolder("NAME").Strings()
	return cmd.FullCommand(), func(ctx context.Context, e env) (int, error) {
		scenarios, err := chosen(*names)
		if err == nil && (*runs < 1 || *truth < 1000) {
			err = &standalone.UsageError{Text: "known-answers: --runs must be at least 1, --truth-requests at least 1000"}
		}
		if err != nil {
			return 0, err
		}
		s := oracle.Study{Scenarios: scenarios, Runs: *runs, Seed: *seed, Truth: *truth}
		if err := s.Run(ctx, progress(e.stderr)); err != nil {
			return 0, err
		}
		if err := s.Write(e.stdout); err != nil {
			return 0, err
		}
		if len(*names) > 0 {
			return 0, nil // what is demanded holds for all scenarios together
		}
		if faults := s.Count().Faults(); len(faults) > 0 {
			return 0, errors.New("the verdict does not do what is demanded of it: " + strings.Join(faults, "; "))
		}
		return 0, nil
	}
}

// chosen are the scenarios of these names; all without one.
func chosen(names []string) ([]oracle.Scenario, error) {
	all := oracle.Scenarios()
	if len(names) == 0 {
		return all, nil
	}
	var picked []oracle.Scenario
	for _, name := range names {
		i := slices.IndexFunc(all, func(s oracle.Scenario) bool { return s.Name == name })
		if i < 0 {
			known := make([]string, len(all))
			for j, s := range all {
				known[j] = s.Name
			}
			return nil, &standalone.UsageError{Text: fmt.Sprintf("--scenario: there is no %q; there are: %s", name, strings.Join(known, "; "))}
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// progress says how far it is: on a terminal in one line, elsewhere every ten seconds.
func progress(w io.Writer) func(n, of int) {
	f, ok := w.(interface{ Fd() uintptr })
	terminal := ok && term.IsTerminal(int(f.Fd()))
	last := time.Now()
	return func(n, of int) {
		switch {
		case terminal && n == of:
			fmt.Fprintf(w, "\r%d of %d runs\n", n, of)
		case terminal:
			fmt.Fprintf(w, "\r%d of %d runs", n, of)
		case time.Since(last) >= 10*time.Second || n == of:
			last = time.Now()
			fmt.Fprintf(w, "%d of %d runs\n", n, of)
		}
	}
}

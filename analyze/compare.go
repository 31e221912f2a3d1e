package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/analyze/analysis"
	"firstbreach/analyze/compare"
	"firstbreach/analyze/standalone"
)

func addCompare(app *kingpin.Application) (string, command) {
	cmd := app.Command("compare", "Compare run B with run A: regression, improvement, trade-off, no difference, or why that can't be said.")
	a := cmd.Arg("A", "Run directory, or the ID of a run in --runs: what B is compared with.").Required().String()
	b := cmd.Arg("B", "Run directory, or the ID of a run in --runs.").Required().String()
	runs := cmd.Flag("runs", "Folder of run directories, for runs named by ID; runs when left out.").Default("runs").PlaceHolder("DIR").String()
	intended := cmd.Flag("intended", "A condition that may differ since it is what is compared, such as engine_version or plan.fixed; repeatable.").PlaceHolder("KEY").Strings()
	same := cmd.Flag("same", "A further run of exactly what A ran: how far the two are apart is the A/A floor; repeatable.").PlaceHolder("RUN").Strings()
	out := cmd.Flag("out", "Folder that comparison.json and comparison.md are written to.").PlaceHolder("DIR").String()
	failOn := cmd.Flag("fail-on", "Outcomes that make the exit status non-zero: a list of regression (15), inconclusive (20), invalid (30, the runs can't be compared).").PlaceHolder("LIST").String()
	return cmd.FullCommand(), func(_ context.Context, e env) (int, error) {
		fail, err := analysis.ParseFailOnCompared(*failOn)
		if err != nil {
			return 0, &standalone.UsageError{Text: err.Error()}
		}
		var read []compare.Run
		for _, name := range append([]string{*a, *b}, *same...) {
			r, err := compare.Find(name, *runs)
			if err != nil {
				return 0, err
			}
			read = append(read, r)
		}
		for i, r := range read {
			for _, other := range read[:i] {
				if r.Report.Run == other.Report.Run {
					return 0, &compare.InputError{Text: fmt.Sprintf("%s and %s are both run %s: a run can't be compared with itself, and two runs under one ID can't be told apart", other.Dir, r.Dir, r.Report.Run)}
				}
			}
		}
		res := compare.Compare(read[0], read[1], compare.Options{Intended: *intended, Same: read[2:]})
		if err := res.WriteMarkdown(e.stdout); err != nil {
			return 0, err
		}
		if *out != "" {
			err = res.WriteDir(*out)
		}
		return fail.ExitCompared(res.Outcome), err
	}
}

func addList(app *kingpin.Application) (string, command) {
	cmd := app.Command("list", "List the runs in a folder, the oldest first: where each first broke, and whether it may be compared with the one before.")
	folder := cmd.Arg("folder", "Folder of run directories; runs when left out.").Default("runs").String()
	format := cmd.Flag("format", "table or json.").Default("table").Enum("table", "json")
	return cmd.FullCommand(), func(_ context.Context, e env) (int, error) {
		chain, err := compare.Chain(*folder)
		if err != nil {
			return 0, err
		}
		switch {
		case *format == "json":
			j := json.NewEncoder(e.stdout)
			j.SetIndent("", "  ")
			return 0, j.Encode(chain)
		case len(chain) == 0:
			_, err = fmt.Fprintf(e.stdout, "No run in %s.\n", *folder)
			return 0, err
		}
		return 0, compare.WriteChain(e.stdout, chain)
	}
}

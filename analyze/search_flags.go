package main

import (
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/analyze/search"
	"firstbreach/analyze/standalone"
)

// searchFlags are those of a search.
type searchFlags struct {
	on    bool
	given []string // those that mean nothing without it
	search.Options
}

func addSearchFlags(cmd *kingpin.CmdClause) *searchFlags {
	f := &searchFlags{}
	cmd.Flag("search", "Find the exact first breach (docs/search.md): doubles the concurrency, halves what is between, measures neighbours in turn until both are decided, and both once more. The plan's ladder is not run.").BoolVar(&f.on)
	flag := func(name, help string) *kingpin.FlagClause {
		return cmd.Flag("search."+name, help).PreAction(func(*kingpin.ParseContext) error { return nil })
	}
	flag("min", "Lowest concurrency to look at.").Default("1").PlaceHolder("N").IntVar(&f.Min)
	flag("max", "Highest concurrency to look at.").Default("64").PlaceHolder("N").IntVar(&f.Max)
	flag("looks", "How many times a level is judged at most: after 3, 6, 12 and so on rounds. More looks decide closer to the limit, and cost requests at every level.").Default("3").PlaceHolder("N").IntVar(&f.Looks)
	flag("requests", "Send no more requests than that, warm-up included; 0: no such budget.").Default("0").PlaceHolder("N").Int64Var(&f.Requests)
	flag("time", "Take no longer than that; 0s: no such budget.").Default("0s").PlaceHolder("TIME").DurationVar(&f.Time)
	return f
}

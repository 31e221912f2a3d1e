package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/analyze/search"
	"firstbreach/analyze/standalone"
)

// searchFlags are those of a search.
type searchFlags struct {
	on      bool
	given   map[string]*bool // those that mean nothing without it
	options search.Options
}

func addSearchFlags(cmd *kingpin.CmdClause) *searchFlags {
	f := &searchFlags{given: map[string]*bool{}}
	cmd.Flag("search", "Find the exact first breach (docs/search.md): double the concurrency, halve what lies between, measure neighbours in turn until both are decided, and both once more. The plan's ladder is not run.").BoolVar(&f.on)
	flag := func(name, placeholder, normally, help string) *kingpin.FlagClause {
		f.given[name] = new(bool)
		return cmd.Flag(name, help).Default(normally).PlaceHolder(placeholder).IsSetByUser(f.given[name])
	}
	flag("search.min", "N", "1", "Lowest concurrency to look at; 1 when left out.").IntVar(&f.options.Min)
	flag("search.max", "N", "64", "Highest concurrency to look at; 64 when left out.").IntVar(&f.options.Max)
	flag("search.looks", "N", "3", "How many times a level is judged at most: after 3, 6, 12 and so on rounds; 3 when left out. More looks decide closer to the limit, and take more requests at every level.").IntVar(&f.options.Looks)
	flag("search.requests", "N", "0", "Send no more requests than that, warm-up included; no such budget when left out.").Int64Var(&f.options.Requests)
	flag("search.time", "TIME", "0s", "Take no longer than that; no such budget when left out.").DurationVar(&f.options.Time)
	return f
}

// search is what the flags ask for; nil: no search.
func (f *searchFlags) search() (*search.Options, error) {
	if f.on {
		return &f.options, nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		if *f.given[name] {
			return nil, &standalone.UsageError{Text: fmt.Sprintf("--%s belongs to a search: pass --search as well", name)}
		}
	}
	return nil, nil
}

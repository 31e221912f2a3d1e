package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"firstbreach/exporter/columns"
)

// tolerance is how far a column may be off: by a share of the tool's value, or by one of its unit.
const (
	tolerance = 0.02
	within    = 1.0
)

// run is one tool beside the exporter.
type run struct {
	tool    string
	parse   read
	command []string
	memory  *memory // scraped when the tool prints
	reports [][]report
	at      []time.Time // when it printed them
}

// compareColumns prints a line for each column; it reports whether all agree.
func compareColumns(ctx context.Context, out io.Writer, url string, duration time.Duration) (bool, error) {
	n := int(duration / time.Second)
	if n < 2 {
		return false, fmt.Errorf("a duration of %v is too short", duration)
	}
	count := fmt.Sprint(n + 1) // the first report is of the time before
	runs := []*run{
		{tool: columns.VMStat, parse: readVMStat, command: []string{"vmstat", "1", count}},
		{tool: columns.IOStat, parse: readIOStat, command: []string{"iostat", "-xz", "1", count}},
	}
	var wait sync.WaitGroup
	errs := make([]error, len(runs))
	for i, r := range runs {
		m, err := newMemory()
		if err != nil {
			return false, err
		}
		defer m.Close()
		r.memory = m
		wait.Go(func() { errs[i] = r.follow(ctx, url) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return false, err
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "tool\tdevice\tcolumn\tunit\ttool's mean\tPromQL\tdifference\t")
	all := true
	for _, r := range runs {
		ok, err := r.compare(ctx, table)
		if err != nil {
			return false, err
		}
		all = all && ok
	}
	return all, nil
}

func (r *run) follow(ctx context.Context, url string) error {
	var failed error
	err := follow(ctx, r.parse, func(reports []report) {
		now := time.Now()
		if err := r.memory.scrape(ctx, url, now); err != nil && failed == nil {
			failed = err
		}
		r.reports, r.at = append(r.reports, reports), append(r.at, now)
	}, r.command[0], r.command[1:]...)
	if failed != nil {
		return failed
	}
	return err
}

// compare compares every column of every device that the tool printed.
func (r *run) compare(ctx context.Context, out io.Writer) (bool, error) {
	devices := map[string]bool{}
	printed := map[string]bool{}
	for _, reports := range r.reports[1:] {
		for _, one := range reports {
			devices[one.device] = true
			for name := range one.values {
				printed[name] = true
			}
		}
	}
	all := true
	for _, device := range slices.Sorted(mapKeys(devices)) {
		for _, c := range columns.All() {
			if c.Tool != r.tool {
				continue
			}
			name := strings.Fields(r.tool)[0]
			if !printed[c.Name] {
				fmt.Fprintf(out, "%s\t%s\t%s\t%s\t\t\tnot printed by this version\t\n", name, device, c.Name, c.Unit)
				continue
			}
			theirs := r.mean(device, c)
			ours, err := r.memory.query(ctx, c, device)
			if err != nil {
				return false, err
			}
			note := ""
			if c.OfAMoment() {
				if ours, theirs, note, err = r.moment(ctx, device, c, ours, theirs); err != nil {
					return false, err
				}
			}
			difference, agree := judge(theirs, ours)
			agree = agree || note == between
			if !agree {
				note = "DIFFERS"
			}
			all = all && agree
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%.2f\t%.2f\t%s\t%s\n", name, device, c.Name, c.Unit, theirs, ours, difference, note)
		}
	}
	return all, nil
}

// judge compares the two.
func judge(theirs, ours float64) (difference string, agree bool) {
	d := ours - theirs
	difference = fmt.Sprintf("%+.2f", d)
	if theirs != 0 {
		difference = fmt.Sprintf("%+.2f %%", 100*d/theirs)
	}
	return difference, math.Abs(d) <= within || math.Abs(d) <= tolerance*math.Abs(theirs)
}

// The notes on columns of a moment.
const (
	between = "of a moment: among the tool's values"
	once    = "the tool repeats its first value: compared with that"
)

// moment is how a column of a moment is compared. Each reads it at a moment of its own (and at ours,
// both readers run), so that lying among the tool's values is all that can be asked. procps 4.0.2
// reads memory once and prints it in every line: that is compared with our own first value.
func (r *run) moment(ctx context.Context, device string, c columns.Column, ours, theirs float64) (x, y float64, note string, err error) {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, reports := range r.reports[1:] {
		for _, one := range reports {
			if one.device == device {
				lowest, highest = min(lowest, one.values[c.Name]), max(highest, one.values[c.Name])
			}
		}
	}
	switch {
	case lowest == highest:
		ours, err = r.memory.begin(ctx, c, device)
		return ours, theirs, once, err
	case lowest <= ours && ours <= highest:
		return ours, theirs, between, nil
	}
	return ours, theirs, "", nil
}

// mean is the column's mean over all intervals, each weighted by its length: on a busy machine they
// are longest when the most is done. A column that is itself a mean over operations is weighted by
// how many there were; a device that wasn't printed did nothing.
func (r *run) mean(device string, c columns.Column) float64 {
	var sum, weights float64
	for i, reports := range r.reports[1:] {
		values := map[string]float64{}
		for _, one := range reports {
			if one.device == device {
				values = one.values
			}
		}
		weight := r.at[i+1].Sub(r.at[i]).Seconds()
		if c.Weight != "" {
			operations := 0.0
			for name := range strings.SplitSeq(c.Weight, "+") {
				operations += values[name]
			}
			weight *= operations
		}
		sum += weight * values[c.Name]
		weights += weight
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"firstbreach/analyze/window"
)

const (
	stampForm     = "20060102T150405Z"
	deliveredFile = "delivered.json"
	stateFile     = "state.json"
)

// Report is one report in the folder.
type Report struct {
	Service, Schedule string
	To                time.Time
	Verdict           window.State
	Lines             []string
	Spent             map[string]float64 // share of the budget, by objective
}

// Name is the report's folder within that of its service.
func (r Report) Name() string { return r.To.UTC().Format(stampForm) + "-" + r.Schedule }

// shelf is the folder of the reports: SERVICE/TIME-SCHEDULE/.
type shelf string

func (s shelf) dir(r Report) string { return filepath.Join(string(s), r.Service, r.Name()) }

// check is an error when the folder can't be written.
func (s shelf) check() error {
	err := os.MkdirAll(string(s), 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(string(s), ".check-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("reports can't be written to %s: %w (fix: make it writable for this user, or name another folder)", s, err)
	}
	return nil
}

// all lists the reports, the newest first.
func (s shelf) all() ([]Report, error) {
	names, err := filepath.Glob(filepath.Join(string(s), "*", "*Z-*", window.JSONFile))
	if err != nil {
		return nil, err
	}
	var out []Report
	for _, name := range names {
		if r, ok := read(name); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Report) int {
		return cmp.Or(b.To.Compare(a.To), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Schedule, b.Schedule))
	})
	return out, nil
}

func read(name string) (Report, bool) {
	dir := filepath.Dir(name)
	stamp, schedule, ok := strings.Cut(filepath.Base(dir), "-")
	to, err := time.Parse(stampForm, stamp)
	if !ok || err != nil {
		return Report{}, false
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return Report{}, false
	}
	var res window.Result
	if json.Unmarshal(text, &res) != nil || res.Verdict == "" {
		return Report{}, false
	}
	r := summary(&res, schedule, to)
	r.Service = filepath.Base(filepath.Dir(dir))
	return r, true
}

func summary(res *window.Result, schedule string, to time.Time) Report {
	r := Report{Service: res.Service, Schedule: schedule, To: to, Verdict: res.Verdict, Lines: res.Headline(), Spent: map[string]float64{}}
	for _, o := range res.Objectives {
		if o.Spent != nil {
			r.Spent[o.Name] = *o.Spent
		}
	}
	return r
}

// prune removes reports of a schedule that are older than it keeps; the last one of a service stays.
func (s shelf) prune(list []Report, sched Schedule, now time.Time) (kept []Report, err error) {
	var errs []error
	seen := map[string]bool{}
	for _, r := range list {
		first := !seen[r.Service]
		seen[r.Service] = true
		if first || r.Schedule != sched.Name || now.Sub(r.To) <= sched.Keep {
			kept = append(kept, r)
			continue
		}
		errs = append(errs, os.RemoveAll(s.dir(r)))
	}
	return kept, errors.Join(errs...)
}

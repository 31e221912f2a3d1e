package serve

import (
	"cmp"
	"errors"
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
	Verdict           window.State       // "" where it wasn't read
	Lines             []string           // of the newest of its service only
	Spent             map[string]float64 // share of the budget, by objective; of the last of its schedule only
}

// Name is the report's folder within that of its service.
func (r Report) Name() string { return r.To.UTC().Format(stampForm) + "-" + r.Schedule }

// shelf is the folder of the reports: SERVICE/TIME-SCHEDULE/.
type shelf string

func (s shelf) dir(r Report) string { return filepath.Join(string(s), r.Service, r.Name()) }

// check is an error when the folder can't be written, or made where it isn't there yet. It leaves nothing behind.
func (s shelf) check() error {
	dir := filepath.Clean(string(s))
	for {
		_, err := os.Stat(dir)
		if parent := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && parent != dir {
			dir = parent
			continue
		}
		if err != nil {
			return err
		}
		f, err := os.CreateTemp(dir, ".check-*")
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
}

// all lists the reports, the newest first.
func (s shelf) all() ([]Report, error) {
	names, err := filepath.Glob(filepath.Join(string(s), "*", "*Z-*", window.JSONFile))
	if err != nil {
		return nil, err
	}
	var out []Report
	for _, name := range names {
		if r, ok := named(name); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Report) int {
		return cmp.Or(b.To.Compare(a.To), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Schedule, b.Schedule))
	})
	return s.read(out), nil
}

// named is what a report's path says of it.
func named(path string) (Report, bool) {
	dir := filepath.Dir(path)
	stamp, schedule, ok := strings.Cut(filepath.Base(dir), "-")
	to, err := time.Parse(stampForm, stamp)
	return Report{Service: filepath.Base(filepath.Dir(dir)), Schedule: schedule, To: to}, ok && err == nil
}

// read reads the reports that a page or a metric shows, where they haven't been, and leaves out those that
// can't be: of each service the newest few, and the last of each schedule. Of the others it keeps no more
// than what their paths say: a shelf may hold tens of thousands. The list is the newest first.
func (s shelf) read(list []Report) []Report {
	ofService, seen := map[string]int{}, map[[2]string]bool{}
	out := make([]Report, 0, len(list))
	for _, r := range list {
		key := [2]string{r.Service, r.Schedule}
		newest, last := ofService[r.Service] == 0, !seen[key]
		if r.Verdict == "" && (last || ofService[r.Service] <= shown) || newest && r.Lines == nil || last && r.Spent == nil {
			res, err := readResult(s.dir(r))
			if err != nil || res.Verdict == "" {
				continue
			}
			service := r.Service
			r = summary(res, r.Schedule, r.To)
			r.Service = service
		}
		if !newest {
			r.Lines = nil
		}
		if !last {
			r.Spent = nil
		}
		ofService[r.Service]++
		seen[key] = true
		out = append(out, r)
	}
	return out
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

// prune removes what is older than its schedule keeps. The last report of a service that is still reported
// on stays; a schedule that the configuration no longer has keeps what the longest other one does.
func (s shelf) prune(list []Report, c *Config, now time.Time) (kept []Report, err error) {
	keep := map[string]time.Duration{}
	var longest time.Duration
	for _, sched := range c.Schedules {
		keep[sched.Name] = sched.Keep
		longest = max(longest, sched.Keep)
	}
	seen := map[string]bool{}
	for _, f := range c.SLO {
		seen[f.Service] = false
	}
	var errs []error
	for _, r := range list {
		had, current := seen[r.Service]
		last := current && !had
		if current {
			seen[r.Service] = true
		}
		atMost, ok := keep[r.Schedule]
		if !ok {
			atMost = longest
		}
		if last || now.Sub(r.To) <= atMost {
			kept = append(kept, r)
			continue
		}
		errs = append(errs, os.RemoveAll(s.dir(r)))
	}
	return s.read(kept), errors.Join(errs...)
}

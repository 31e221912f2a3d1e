package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"firstbreach/analyze/report"
	"firstbreach/loadgen/record"
)

// Run is one analysed run.
type Run struct {
	Dir      string
	Report   *report.Document
	Manifest *record.Manifest // nil where the report was made without a run directory
	Plan     string           // as used; "" when it isn't there
}

// Started is when the run began; the zero time when nothing says.
func (r Run) Started() time.Time {
	switch {
	case r.Manifest != nil:
		return r.Manifest.StartedAt
	case r.Report.From != nil:
		return *r.Report.From
	}
	return time.Time{}
}

// InputError is a run that can't be read; its text says what to do.
type InputError struct{ Text string }

func (e *InputError) Error() string { return e.Text }

// Load reads the report of a run directory, and its manifest and plan where they are there.
func Load(dir string) (Run, error) {
	text, err := os.ReadFile(filepath.Join(dir, record.ReportJSON))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Run{}, &InputError{fmt.Sprintf("%s holds no %s: make it with analyze report --run %s", dir, record.ReportJSON, dir)}
	case err != nil:
		return Run{}, fmt.Errorf("read the report: %w", err)
	}
	run := Run{Dir: dir, Report: &report.Document{}}
	path := filepath.Join(dir, record.ReportJSON)
	if err := json.Unmarshal(text, run.Report); err != nil {
		return Run{}, &InputError{fmt.Sprintf("%s can't be read: %v; make it again with analyze report --run %s", path, err, dir)}
	}
	if run.Report.Schema != report.Schema || run.Report.Run == "" {
		return Run{}, &InputError{fmt.Sprintf("%s has schema %d and run %q, this release reads schema %d: make it again with analyze report --run %s",
			path, run.Report.Schema, run.Report.Run, report.Schema, dir)}
	}
	if _, err := os.Stat(filepath.Join(dir, record.ManifestFile)); err == nil {
		m, err := record.ReadManifest(dir)
		if err != nil {
			return Run{}, fmt.Errorf("read the run: %w", err)
		}
		if m.Run != run.Report.Run {
			return Run{}, &InputError{fmt.Sprintf("%s: the report is of run %s, the manifest of run %s; make the report again with analyze report --run %s", dir, run.Report.Run, m.Run, dir)}
		}
		run.Manifest = &m
	}
	plan, err := os.ReadFile(filepath.Join(dir, record.PlanFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Run{}, fmt.Errorf("read the plan of the run: %w", err)
	}
	run.Plan = string(plan)
	return run, nil
}

// Find reads the run that name names: a run directory, or the ID of a run in one of folder's directories.
func Find(name, folder string) (Run, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return Load(name)
	}
	chain, err := Chain(folder)
	if err != nil {
		return Run{}, fmt.Errorf("%s is no directory, so it was looked for as a run ID: %w", name, err)
	}
	var found []Entry
	var dirs, known []string
	for _, e := range chain {
		if e.Run == name {
			found, dirs = append(found, e), append(dirs, e.Dir)
		}
		known = append(known, e.Run)
	}
	switch len(dirs) {
	case 0:
		has := "it holds no run"
		if len(known) > 0 {
			has = "it holds " + strings.Join(known[max(0, len(known)-5):], ", ")
		}
		return Run{}, &InputError{fmt.Sprintf("%s is neither a run directory nor the ID of a run in %s (%s); see analyze list %s", name, folder, has, folder)}
	case 1:
		if read := found[0].analysed; read != nil {
			return *read, nil
		}
		return Load(dirs[0]) // says why it can't be read
	}
	slices.Sort(dirs)
	return Run{}, &InputError{fmt.Sprintf("%d runs in %s have the ID %s: %s; name the directory of the one that you mean", len(dirs), folder, name, strings.Join(dirs, ", "))}
}

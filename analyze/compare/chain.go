package compare

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"firstbreach/loadgen/record"
)

// Entry is one run of a chain.
type Entry struct {
	Dir         string    `json:"dir"`
	Run         string    `json:"run"`
	StartedAt   time.Time `json:"started_at"`
	Model       string    `json:"model"`
	Engine      string    `json:"engine"`
	State       string    `json:"state"`        // the verdict, or not_analysed
	FirstBreach string    `json:"first_breach"` // "" when there is none
	LastOK      string    `json:"last_ok"`
	Changed     []string  `json:"changed"`           // keys of the conditions that differ from the run before
	First       bool      `json:"first"`             // nothing before it to be compared with
	Running     bool      `json:"running,omitempty"` // its manifest has no end: it goes on, or its load generator was killed
	Problem     string    `json:"problem,omitempty"`

	analysed *Run
}

const notAnalysed = "not_analysed"

// Chain lists the runs whose directories lie in folder, the oldest first. A run that can't be read is listed with
// what is wrong with it.
func Chain(folder string) ([]Entry, error) {
	dirs, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &InputError{fmt.Sprintf("there is no folder %s: name the one that holds the run directories", folder)}
	case err != nil:
		return nil, &InputError{fmt.Sprintf("list the runs: %v", err)}
	}
	chain := []Entry{}
	for _, d := range dirs {
		if e, ok := entry(filepath.Join(folder, d.Name())); d.IsDir() && ok {
			chain = append(chain, e)
		}
	}
	slices.SortStableFunc(chain, func(a, b Entry) int {
		if c := a.StartedAt.Compare(b.StartedAt); c != 0 {
			return c
		}
		return strings.Compare(a.Dir, b.Dir)
	})
	var before *Run
	for i := range chain {
		if chain[i].analysed == nil {
			continue
		}
		chain[i].First = before == nil
		if before != nil {
			chain[i].Changed = keys(Differences(*before, *chain[i].analysed, nil), false)
		}
		before = chain[i].analysed
	}
	return chain, nil
}

// entry is what a directory says of its run; ok is false when it isn't a run directory.
func entry(dir string) (Entry, bool) {
	e := Entry{Dir: dir, State: notAnalysed}
	m, err := record.ReadManifest(dir)
	if err == nil {
		e.Run, e.StartedAt, e.Running = m.Run, m.StartedAt, m.State == record.Running
		e.Model, e.Engine = m.Conditions["model"], engine(m.Conditions)
	}
	if _, missing := os.Stat(filepath.Join(dir, record.ReportJSON)); missing != nil {
		return e, err == nil
	}
	run, err := Load(dir)
	if err != nil {
		e.Problem = err.Error()
		return e, true
	}
	d := run.Report
	e.analysed = &run
	e.Run, e.StartedAt, e.State = d.Run, run.Started(), string(d.State)
	e.Model, e.Engine = d.Conditions["model"], engine(d.Conditions)
	if b := d.FirstBreach; b != nil {
		e.FirstBreach = b.Level().String()
		if l, ok := b.LastOKLevel(); ok {
			e.LastOK = l.String()
		}
	}
	return e, true
}

func engine(conditions map[string]string) string {
	return strings.TrimSpace(conditions["engine"] + " " + conditions["engine_version"])
}

// WriteChain writes the runs as a table for a terminal.
func WriteChain(w io.Writer, chain []Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tSTARTED\tMODEL\tENGINE\tFIRST BREACH\tLAST OK\tVERDICT\tAGAINST THE RUN BEFORE")
	for _, e := range chain {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", dash(e.Run), e.StartedAt.UTC().Format(time.RFC3339),
			dash(e.Model), dash(e.Engine), dash(e.FirstBreach), dash(e.LastOK), e.State, e.against())
	}
	return t.Flush()
}

func (e Entry) against() string {
	switch {
	case e.Problem != "":
		return e.Problem
	case e.State == notAnalysed && e.Running:
		return "still running; if loadgen was killed: analyze report --run " + e.Dir
	case e.State == notAnalysed:
		return "no report: analyze report --run " + e.Dir
	case e.First:
		return "-"
	case len(e.Changed) == 0:
		return "comparable"
	case len(e.Changed) > 4:
		return fmt.Sprintf("changed: %s and %d more", strings.Join(e.Changed[:4], ", "), len(e.Changed)-4)
	}
	return "changed: " + strings.Join(e.Changed, ", ")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

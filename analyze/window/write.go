package window

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"firstbreach/internal/atomicfile"
	"firstbreach/internal/figures"
)

// Names of the files of a report.
const (
	MarkdownFile = "report.md"
	HTMLFile     = "report.html"
	JSONFile     = "window.json"
)

//go:embed page.html.tmpl
var pageText string //nolint:gochecknoglobals // an embedded file

// WriteFiles writes a report's files to dir, each whole or not at all, and JSONFile last: where it is, the
// report is complete. The same Result gives the same bytes.
func WriteFiles(dir string, r *Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the report folder can't be made: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	var md, page bytes.Buffer
	if err := WriteMarkdown(&md, r); err != nil {
		return err
	}
	if err := WriteHTML(&page, r); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{MarkdownFile, md.Bytes()}, {HTMLFile, page.Bytes()}, {JSONFile, append(text, '\n')}} {
		if err := atomicfile.Write(filepath.Join(dir, f.name), f.text); err != nil {
			return fmt.Errorf("%s can't be written: %w", f.name, err)
		}
	}
	return nil
}

// Headline is the result in one to three lines.
func (r *Result) Headline() []string {
	span := stretch(r.From, r.To)
	lines := []string{map[State]string{
		OK:        fmt.Sprintf("%s held its SLO, %s.", r.Service, span),
		Breach:    fmt.Sprintf("%s broke its SLO, %s.", r.Service, span),
		Undecided: fmt.Sprintf("%s: whether the SLO held is undecided, %s.", r.Service, span),
		NoData:    fmt.Sprintf("%s: no data, %s; that is neither good nor bad.", r.Service, span),
	}[r.Verdict]}
	if r.Verdict == Undecided {
		for _, o := range r.Objectives {
			if o.State == Undecided || o.State == NoData {
				return append(lines, o.Name+": "+o.Reason)
			}
		}
	}
	var worst *Objective
	for i := range r.Objectives {
		o := &r.Objectives[i]
		if o.State == r.Verdict && o.Spent != nil && (worst == nil || *o.Spent > *worst.Spent) {
			worst = o
		}
	}
	if worst == nil {
		return lines
	}
	lines = append(lines, fmt.Sprintf("%s: %s of %d requests were good (95 %% interval %s), the target is %s; %s of the budget of %s is spent.",
		worst.Name, percent(*worst.Good), worst.Requests, between(*worst.Interval), percent(worst.Target), percent(*worst.Spent), days(r.PeriodS)))
	if r.Verdict == Breach && worst.Owner != "" {
		lines = append(lines, fmt.Sprintf("Owner: %s (%s). %s", worst.Owner, worst.Contact, worst.Action))
	}
	return lines
}

// stretch is the window in words.
func stretch(from, to time.Time) string {
	const day, clock = "2006-01-02", "15:04"
	from, to = from.UTC(), to.UTC()
	if from.Format(day) == to.Format(day) {
		return from.Format(day+" "+clock) + " to " + to.Format(clock) + " UTC"
	}
	return from.Format(day+" "+clock) + " to " + to.Format(day+" "+clock) + " UTC"
}

// cell is one of a table; State gives it a colour on the page.
type cell struct {
	Text  string
	State State
}

type section struct {
	Title string
	Head  []string
	Rows  [][]cell
	Lines []string
}

func plainCells(texts ...string) []cell {
	var out []cell
	for _, t := range texts {
		out = append(out, cell{Text: t})
	}
	return out
}

// sections are the report below its headline.
func (r *Result) sections() []section {
	objectives := section{Title: "Objectives", Head: []string{"objective", "verdict", "requests", "bad", "good", "95 % interval", "target", "burn rate", "budget spent", "owner"}}
	action := section{Title: "What to do now"}
	breaches := section{Title: "Breaches", Head: []string{"objective", "began between", "ended between", "bad of requests", "first layer", "certainty"}}
	flight := section{Title: "Requests in flight", Head: []string{"objective", "in flight", "bins", "requests", "bad", "verdict", "stretches over"}}
	for _, o := range r.Objectives {
		row := []cell{{Text: o.Name + ": " + o.Text}, {word(o.State), o.State}, {Text: fmt.Sprint(o.Requests)}, {Text: fmt.Sprint(o.Bad)}}
		if o.Good == nil {
			row = append(row, plainCells("-", "-", percent(o.Target), "-", "-", o.Owner)...)
		} else {
			row = append(row, plainCells(percent(*o.Good), between(*o.Interval), percent(o.Target), short(*o.BurnRate), percent(*o.Spent), o.Owner)...)
		}
		objectives.Rows = append(objectives.Rows, row)
		if o.Reason != "" {
			objectives.Lines = append(objectives.Lines, o.Name+": "+o.Reason)
		}
		if o.GapBins > 0 {
			objectives.Lines = append(objectives.Lines, fmt.Sprintf("%s: in %d of %d bins nothing was scraped; nothing is known of them.", o.Name, o.GapBins, r.Bins))
		}
		if o.IdleBins > 0 {
			objectives.Lines = append(objectives.Lines, fmt.Sprintf("%s: in %d of %d bins no request ended.", o.Name, o.IdleBins, r.Bins))
		}
		for _, n := range o.Notes {
			objectives.Lines = append(objectives.Lines, o.Name+": "+n)
		}
		if o.State == Breach || len(o.Breaches) > 0 {
			todo := o.Name + ": no owner and no action in the SLO file."
			if o.Action != "" {
				todo = fmt.Sprintf("%s, %s (%s): %s", o.Name, o.Owner, o.Contact, o.Action)
			}
			if o.Runbook != "" {
				todo += " Runbook: " + o.Runbook
			}
			action.Lines = append(action.Lines, todo)
		}
		for _, b := range o.Breaches {
			ended := "still on"
			if b.End != nil {
				ended = span(*b.End)
			}
			began := span(b.Onset)
			if b.Before {
				began = "before " + stamp(b.Onset[1])
			}
			layer := b.Layer
			if layer == "" {
				layer = "-"
			}
			breaches.Rows = append(breaches.Rows, plainCells(o.Name, began, ended, fmt.Sprintf("%d of %d", b.Bad, b.Requests), layer, b.Sure))
			breaches.Lines = append(breaches.Lines, fmt.Sprintf("%s, %s: %s", o.Name, stamp(b.Onset[1]), b.Text))
			for _, t := range b.Turned {
				breaches.Lines = append(breaches.Lines, fmt.Sprintf("%s, %s: %s (%s) left its normal range, about %s %s, between %s.", o.Name, stamp(b.Onset[1]), plain(t.Signal), t.Layer, short(t.Normal), plain(t.Unit), span(t.Onset)))
			}
		}
		if o.InFlight != nil {
			flight.Lines = append(flight.Lines, o.Name+": "+o.InFlight.Text)
			for _, l := range o.InFlight.Levels {
				flight.Rows = append(flight.Rows, []cell{{Text: o.Name}, {Text: fmt.Sprintf("over %s, up to %s", number(l.Over), number(l.UpTo))}, {Text: fmt.Sprint(l.Bins)},
					{Text: fmt.Sprint(l.Requests)}, {Text: fmt.Sprint(l.Bad)}, {word(l.State), l.State}, {Text: fmt.Sprint(l.Incidents)}})
			}
		}
	}
	if len(breaches.Rows) == 0 {
		breaches.Lines = []string{"No stretch in which more was bad than may be, beyond chance."}
	}
	gauges := section{Title: "Service and resource objectives", Head: []string{"objective", "layer", "verdict", "bound", "worst", "bins over", "longest", "since", "owner"}}
	for _, g := range r.Gauges {
		worst, since := "-", "-"
		if g.Worst != nil {
			worst = short(*g.Worst)
		}
		if g.Since != nil {
			since = stamp(*g.Since)
		}
		gauges.Rows = append(gauges.Rows, []cell{{Text: g.Name}, {Text: g.Layer}, {word(g.State), g.State}, {Text: g.Bound}, {Text: worst}, {Text: fmt.Sprint(g.Over)},
			{Text: (time.Duration(g.LongestS) * time.Second).String()}, {Text: since}, {Text: g.Owner}})
		if g.Reason != "" {
			gauges.Lines = append(gauges.Lines, g.Name+": "+g.Reason)
		}
	}
	for _, s := range r.Skipped {
		gauges.Lines = append(gauges.Lines, s.Name+": "+s.Reason)
	}
	limits := section{Title: "What this can't say", Lines: append([]string(nil), r.Limits...)}
	for _, l := range r.Layers {
		if len(l.Signals) == 0 {
			limits.Lines = append(limits.Lines, fmt.Sprintf("The %s layer has no data: %s.", l.Name, l.Reason))
		}
	}
	queries := section{Title: "Queries", Head: []string{"what", "PromQL", "series", "samples"}}
	for _, q := range r.Log.Queries {
		queries.Rows = append(queries.Rows, plainCells(q.Name, q.Expr, fmt.Sprint(q.Series), fmt.Sprint(q.Samples)))
	}
	queries.Lines = []string{fmt.Sprintf("Each from %s to %s at the end of bins of %v, or of their parts.", stamp(r.From), stamp(r.To), time.Duration(r.ResolutionS)*time.Second)}
	var out []section
	for _, s := range []section{action, objectives, breaches, flight, gauges, limits, queries} {
		if len(s.Rows)+len(s.Lines) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// WriteMarkdown writes the report as Markdown.
func WriteMarkdown(w io.Writer, r *Result) error {
	var b strings.Builder
	for i, line := range r.Headline() {
		if i == 0 {
			line = "# " + line
		}
		fmt.Fprintf(&b, "%s\n\n", line)
	}
	for _, s := range r.sections() {
		fmt.Fprintf(&b, "## %s\n\n", s.Title)
		if len(s.Rows) > 0 {
			fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(s.Head, " | "), strings.Repeat(" --- |", len(s.Head)))
			for _, row := range s.Rows {
				for _, c := range row {
					fmt.Fprintf(&b, "| %s ", inTable(c.Text))
				}
				b.WriteString("|\n")
			}
			b.WriteString("\n")
		}
		for _, l := range s.Lines {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(l, "\n", " "))
		}
		if len(s.Lines) > 0 {
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// WriteHTML writes the report as one page, with nothing to load and no script.
func WriteHTML(w io.Writer, r *Result) error {
	t, err := template.New("page").Funcs(template.FuncMap{"word": word}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		*Result
		Lines    []string
		Sections []section
	}{r, r.Headline(), r.sections()})
}

func inTable(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

func word(s State) string { return plain(string(s)) }

func between(ci [2]float64) string { return percent(ci[0]) + " to " + percent(ci[1]) }

func span(t [2]time.Time) string { return stamp(t[0]) + " and " + stamp(t[1]) }

func short(v float64) string { return fmt.Sprintf("%s", figures.Write(v, 4)) }

func days(s float64) string {
	d := time.Duration(s) * time.Second
	if day := 24 * time.Hour; d%day == 0 {
		return fmt.Sprintf("%d d", d/day)
	}
	return d.String()
}

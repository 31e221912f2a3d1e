package report

import (
	_ "embed"
	"html/template"
	"io"

	"firstbreach/analyze/verdict"
)

//go:embed report.html.tmpl
var pageTemplate string //nolint:gochecknoglobals // an embedded file

//go:embed report.css
var pageStyle string //nolint:gochecknoglobals // an embedded file

// page is what the template reads.
type page struct {
	*Document
	Style    template.CSS
	Word     string // the state in words
	Span     string
	Rungs    []rung
	Worst    verdict.Status // of the validity checks
	Checks   []checkLine
	User     group
	Machine  table
	Verdicts table
	Once     table
	Gauges   table
	Facts    []fact
	Sought   []fact // about the search
	Near     table
	Classed  table
	Later    table
	Parts    table
	After    table
	Same     table
	Turned   table
	Why      table
	Grew     table
	Full     table
	Admit    table
	Back     string
	Readings table
	Fixed    table
	Asked    table
	Ladder   []figure
	Time     []figure
	SLOText  string
	PlanText string
}

// rung is one step of the ladder as the page's first picture shows it.
type rung struct {
	Level  string
	State  verdict.State
	Word   string
	Detail string
	First  bool
}

// checkLine is one line of the validity box.
type checkLine struct {
	Name, Word, Detail string
	Status             verdict.Status
}

// group is a table under a head of groups.
type group struct {
	Groups []span2
	table
}

// span2 is a head over some columns.
type span2 struct {
	Text string
	Cols int
}

// WriteHTML writes report.html: one file, with nothing to load and no script.
func (d *Document) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{"icon": icon, "missing": cell.missing}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, d.page())
}

func (d *Document) page() page {
	p := page{
		Document: d, Style: template.CSS(pageStyle), //nolint:gosec // our own file
		Word: verdictWord(d.State), Span: clock(d.From) + " to " + clock(d.To),
		User: d.groupedUserTable(), Machine: d.machineTable(), Verdicts: d.objectiveTable(), Once: d.capacityTable(), Gauges: d.gaugeTable(),
		Sought: d.searchFacts(), Classed: d.classTable(), Later: d.phaseTable(), Parts: d.partTable(), After: d.recoveryTable(), Same: d.equivalenceTable(), Turned: d.onsetTable(), Why: d.hypothesisTable(), Grew: d.gainTable(), Full: d.saturationTable(), Admit: d.limitTable(), Readings: d.readingsTable(), Fixed: d.conditionsTable(), Asked: d.queryTable(),
		Ladder: d.ladderFigures(), SLOText: d.meta.SLO, PlanText: d.meta.Plan, Worst: verdict.Passed,
	}
	for _, s := range d.charted() {
		p.Rungs = append(p.Rungs, d.rung(s))
	}
	for _, c := range d.Validity {
		p.Checks = append(p.Checks, checkLine{plain(c.Name), plain(string(c.Status)), c.Detail, c.Status})
		if severity(c.Status) > severity(p.Worst) {
			p.Worst = c.Status
		}
	}
	if f, ok := d.timelineFigure(); ok {
		p.Time = append(p.Time, f)
	}
	if d.Recovery != nil {
		p.Back = capital(d.Recovery.words())
	}
	if d.FirstBreach != nil {
		p.Facts, p.Near = d.breachFacts(), d.besideTable()
	}
	return p
}

// rung describes one step by the objective that used up most of its allowance.
func (d *Document) rung(s Step) rung {
	r := rung{Level: s.Level().String(), State: s.Verdict, Word: verdictWord(s.Verdict), First: d.FirstBreach != nil && d.FirstBreach.Level() == s.Level()}
	var most float64
	for _, o := range s.Objectives {
		if o.Share == nil || o.Allowance == 0 {
			continue
		}
		if used := *o.Share / o.Allowance; r.Detail == "" || used > most {
			most, r.Detail = used, percent(*o.Share)+" missed "+o.Name
		}
	}
	return r
}

// groupedUserTable splits the three quantiles of each latency into columns of their own.
func (d *Document) groupedUserTable() group {
	g := group{Groups: []span2{{"", 5}, {"TTFT", 3}, {"E2E", 3}, {"TPOT", 3}, {"per second", 3}}}
	g.Head = []string{"N", "verdict", "valid rounds", "n", "success", "P50", "P95", "P99", "P50", "P95", "P99", "P50", "P95", "P99", "requests", "tokens", "goodput"}
	for _, s := range d.Steps {
		row := []cell{num(s.name()), state(s.Verdict), s.roundsCell(), num(grouped(s.Requests)), num(optional(s.Success, percent))}
		for _, q := range []Quantiles{s.Latency.TTFT, s.Latency.E2E, s.Latency.TPOT} {
			row = append(row, num(optional(q.P50, seconds)), num(optional(q.P95, seconds)), num(optional(q.P99, seconds)))
		}
		row = append(row, num(optional(s.Throughput.Requests, significant)), num(optional(s.Throughput.Tokens, significant)), num(optional(s.Throughput.Goodput, significant)))
		g.row(row...)
	}
	g.Notes = d.userTable().Notes
	return g
}

// severity orders the outcomes of a check.
func severity(s verdict.Status) int {
	switch s {
	case verdict.Failed:
		return 3
	case verdict.Warn:
		return 2
	case verdict.NotChecked:
		return 1
	}
	return 0
}

// icon is a sign for a state or status that doesn't rest on colour.
func icon(s any) string {
	var name string
	switch v := s.(type) {
	case verdict.State:
		name = string(v)
	case verdict.Status:
		name = string(v)
	}
	switch name {
	case "ok", "none", "held", "recovered":
		return "✓"
	case "breach", "failed", "not_held", "degraded":
		return "✕"
	case "warn", "invalid":
		return "!"
	case "inconclusive", "undecided":
		return "?"
	}
	return "–"
}

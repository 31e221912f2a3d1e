package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"firstbreach/analyze/verdict"
)

// table is a table of texts, the same for Markdown and HTML.
type table struct {
	Head  []string
	Rows  [][]cell
	Notes []string // why cells have no data
}

// cell is one text of a table. State colours it in HTML.
type cell struct {
	Text  string
	State verdict.State
	Left  bool // text rather than a number
	Code  bool // an expression
}

func text(s string) cell           { return cell{Text: s, Left: true} }
func num(s string) cell            { return cell{Text: s} }
func state(s verdict.State) cell   { return cell{Text: verdictWord(s), State: s, Left: true} }
func (c cell) missing() bool       { return c.Text == noData }
func (t *table) row(cells ...cell) { t.Rows = append(t.Rows, cells) }

// heading is the head of a column, aligned as its cells are.
type heading struct {
	Text string
	Left bool
}

// Headings are the heads of all columns.
func (t table) Headings() []heading {
	out := make([]heading, len(t.Head))
	for i, h := range t.Head {
		out[i].Text = h
		for _, row := range t.Rows {
			out[i].Left = out[i].Left || row[i].Left
		}
	}
	return out
}

// note adds a reason once.
func (t *table) note(s string) {
	if s != "" && !slices.Contains(t.Notes, s) {
		t.Notes = append(t.Notes, s)
	}
}

// stepName names a step: the ladder by its level, the others by their phase as well.
func (s Step) name() string {
	name := s.Level().String()
	if s.Phase != verdict.PhaseRamp {
		name = s.Phase + " " + name
	}
	if s.Class != "" {
		name += " " + s.Class
	}
	return name
}

// roundsCell says how many rounds count, of how many.
func (s Step) roundsCell() cell { return num(fmt.Sprintf("%d of %d", s.RoundsValid, len(s.Rounds))) }

// userTable is what the users of each step felt.
func (d *Document) userTable() table {
	t := table{Head: []string{"N", "verdict", "valid rounds", "n", "success", "TTFT P50 / P95 / P99", "E2E P50 / P95 / P99", "TPOT P50 / P95 / P99", "req/s", "tokens/s", "goodput/s"}}
	for _, s := range d.Steps {
		t.row(num(s.name()), state(s.Verdict), s.roundsCell(), num(grouped(s.Requests)), num(optional(s.Success, percent)),
			num(triple(s.Latency.TTFT)), num(triple(s.Latency.E2E)), num(triple(s.Latency.TPOT)),
			num(optional(s.Throughput.Requests, significant)), num(optional(s.Throughput.Tokens, significant)), num(optional(s.Throughput.Goodput, significant)))
		if s.Latency.Reason != "" {
			t.note(fmt.Sprintf("%s, latency: %s", s.name(), s.Latency.Reason))
		}
	}
	return t
}

// machineTable is what service and machine did meanwhile.
func (d *Document) machineTable() table {
	columns := []struct{ head, signal string }{{"queue", signalWaiting}, {"CPU", signalCPU}, {"RAM", signalMemory}, {"disk", signalDisk}, {"GPU", signalGPU}, {"VRAM", signalVRAM}}
	t := table{Head: []string{"N"}}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	why := map[string][]string{} // column → steps without data, by reason
	for _, s := range d.Steps {
		row := []cell{num(s.name())}
		for _, c := range columns {
			r, ok := s.reading(c.signal)
			if !ok {
				r.Reason = "not asked for, or no series"
				if !s.Valid {
					r.Reason = "no valid round"
				}
			}
			if r.Mean == nil {
				key := c.head + ": " + r.Reason
				why[key] = append(why[key], s.name())
			}
			row = append(row, num(r.short()))
		}
		t.row(row...)
	}
	t.Notes = append(t.Notes, reasons(why, len(d.Steps))...)
	return t
}

// reasons writes why cells are empty: what shares a reason in one line, with the steps unless it
// is all of them. why holds the steps by "name: reason".
func reasons(why map[string][]string, all int) []string {
	names := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(why)) {
		name, reason, _ := strings.Cut(key, ": ")
		if steps := why[key]; len(steps) < all {
			reason += " (" + strings.Join(steps, ", ") + ")"
		}
		names[reason] = append(names[reason], name)
	}
	var out []string
	for reason, of := range names {
		out = append(out, strings.Join(of, ", ")+": "+reason)
	}
	slices.Sort(out)
	return out
}

// reading finds a service or resource reading of a step.
func (s Step) reading(signal string) (Reading, bool) {
	if r, ok := s.ServiceSignals[signal]; ok {
		return r, true
	}
	r, ok := s.Resources[signal]
	return r, ok
}

// readingsTable is every service and resource reading that has data, by step.
func (d *Document) readingsTable() table {
	t := table{Head: []string{"signal", "layer"}}
	layer := map[string]string{}
	why := map[string][]string{}
	for _, s := range d.Steps {
		t.Head = append(t.Head, s.name())
		for name, r := range s.ServiceSignals {
			layer[name] = "service"
			if r.Mean == nil {
				why[plain(name)+": "+r.Reason] = append(why[plain(name)+": "+r.Reason], s.name())
			}
		}
		for name, r := range s.Resources {
			layer[name] = "resource"
			if r.Mean == nil {
				why[plain(name)+": "+r.Reason] = append(why[plain(name)+": "+r.Reason], s.name())
			}
		}
	}
	names := slices.Sorted(maps.Keys(layer))
	slices.SortStableFunc(names, func(a, b string) int { return layerRank(layer[a]) - layerRank(layer[b]) })
	for _, name := range names {
		row := []cell{text(plain(name)), text(layer[name])}
		some := false
		for _, s := range d.Steps {
			r, _ := s.reading(name)
			some = some || r.Mean != nil
			row = append(row, num(r.short()))
		}
		if some {
			t.row(row...)
		}
	}
	t.Notes = reasons(why, len(d.Steps))
	return t
}

// objectiveTable is the verdict on each objective in each step of the ladder.
func (d *Document) objectiveTable() table {
	t := table{Head: []string{"objective", "N", "verdict", "missed", "slow + failed", "share", "95 % CI", "allowed", "rounds over", "further requests needed", "why"}}
	for _, o := range d.Objectives {
		for _, s := range d.ladder() {
			for _, r := range s.Objectives {
				if r.Name != o.Name {
					continue
				}
				t.row(text(o.Name), num(s.name()), state(r.Verdict), num(grouped(r.Bad)+" of "+grouped(r.Total)), num(fmt.Sprintf("%d + %d", r.Slow, r.Failed)),
					num(optional(r.Share, percent)), num(interval(r.CI)), num(allowed(r)), num(fmt.Sprintf("%d of %d", r.RoundsOver, len(r.PerRound))),
					num(neededCell(r)), text(r.Reason))
			}
		}
	}
	return t
}

func allowed(r ObjectiveResult) string {
	if r.Allowance == 0 {
		return "–"
	}
	return percent(r.Allowance)
}

func neededCell(r ObjectiveResult) string {
	switch {
	case r.Verdict == verdict.OK || r.Verdict == verdict.Breach:
		return "decided"
	case r.Verdict != verdict.Inconclusive:
		return "–"
	case r.Needed == nil:
		return "not by requests alone"
	}
	return "about " + grouped(*r.Needed)
}

// gaugeTable says which gauge objectives were crossed at which step; analysis only.
func (d *Document) gaugeTable() table {
	t := table{Head: []string{"objective", "limit", "layer"}}
	steps := d.Steps
	for _, s := range steps {
		t.Head = append(t.Head, s.name())
	}
	why := map[string][]string{}
	for _, o := range d.Objectives {
		if o.Kind != "gauge" && o.Kind != "expression" {
			continue
		}
		row := []cell{text(o.Name), text(o.Text), text(o.Layer)}
		for _, s := range steps {
			row = append(row, gaugeCell(s, o.Name, why))
		}
		t.row(row...)
	}
	t.Notes = reasons(why, len(steps))
	return t
}

func gaugeCell(s Step, name string, why map[string][]string) cell {
	for _, g := range s.Gauges {
		if g.Name != name {
			continue
		}
		if g.Crossed == nil {
			key := name + ": " + g.Reason
			why[key] = append(why[key], s.name())
			return num(noData)
		}
		if *g.Crossed {
			return num(fmt.Sprintf("crossed (%d of %d rounds)", g.RoundsCrossed, g.Rounds))
		}
		return num("within")
	}
	return num("–")
}

// recoveryTable puts the numbers of the baseline beside those of the recovery.
func (d *Document) recoveryTable() table {
	t := table{Head: []string{"", "baseline", "recovery"}}
	if d.Recovery == nil || d.Recovery.Baseline == nil {
		return t
	}
	a, b := *d.Recovery.Baseline, *d.Recovery.After
	both := func(name string, f func(Step) string) { t.row(text(name), num(f(a)), num(f(b))) }
	both(a.Level().Kind(), func(s Step) string { return s.Level().String() })
	both("valid rounds", func(s Step) string { return s.roundsCell().Text })
	both("requests", func(s Step) string { return grouped(s.Requests) })
	both("success", func(s Step) string { return optional(s.Success, percent) })
	both("TTFT P50 / P95 / P99", func(s Step) string { return triple(s.Latency.TTFT) })
	both("E2E P50 / P95 / P99", func(s Step) string { return triple(s.Latency.E2E) })
	both("TPOT P50 / P95 / P99", func(s Step) string { return triple(s.Latency.TPOT) })
	both("req/s", func(s Step) string { return optional(s.Throughput.Requests, significant) })
	for i, o := range a.Objectives {
		if i < len(b.Objectives) {
			t.row(text(o.Name+", missed"), num(o.shareText()), num(b.Objectives[i].shareText()))
		}
	}
	for _, name := range []string{signalWaiting, signalCPU, signalMemory, signalVRAM} {
		x, okA := a.reading(name)
		y, okB := b.reading(name)
		if okA && okB && (x.Mean != nil || y.Mean != nil) {
			t.row(text(plain(name)), num(x.short()), num(y.short()))
		}
	}
	return t
}

func (o ObjectiveResult) shareText() string {
	if o.Share == nil {
		return noData
	}
	return fmt.Sprintf("%d of %d (%s)", o.Bad, o.Total, percent(*o.Share))
}

// conditionsTable lists what was fixed.
func (d *Document) conditionsTable() table {
	t := table{Head: []string{"condition", "value"}}
	for _, k := range slices.Sorted(maps.Keys(d.Conditions)) {
		t.row(text(plain(k)), text(d.Conditions[k]))
	}
	return t
}

// validityTable is the validity box.
func (d *Document) validityTable() table {
	t := table{Head: []string{"check", "status", "found"}}
	for _, c := range d.Validity {
		t.row(text(plain(c.Name)), text(plain(string(c.Status))), text(c.Detail))
	}
	return t
}

// queryTable is the query log.
func (d *Document) queryTable() table {
	t := table{Head: []string{"what", "evaluated", "series", "expression"}}
	for _, q := range d.Queries {
		t.row(text(q.Name), text(q.evaluated()), num(fmt.Sprint(q.Series)), cell{Text: q.Expr, Left: true, Code: true})
		if q.Error != "" {
			t.note(q.Name + " was refused: " + q.Error)
		}
		for _, w := range q.Warnings {
			t.note(q.Name + ": " + w)
		}
	}
	return t
}

// evaluated says at which time a query was evaluated.
func (q Query) evaluated() string {
	const layout = "2006-01-02T15:04:05.000Z07:00"
	switch {
	case q.At != nil:
		return "@ " + q.At.UTC().Format(layout)
	case q.From != nil && q.To != nil && q.StepS > 0:
		text := fmt.Sprintf("%s to %s every %s", q.From.UTC().Format(layout), q.To.UTC().Format(layout), seconds(q.StepS))
		if q.Lookback > 0 {
			text += ", samples up to " + seconds(q.Lookback) + " old"
		}
		return text
	case q.From != nil && q.To != nil:
		return fmt.Sprintf("%s to %s", q.From.UTC().Format(layout), q.To.UTC().Format(layout))
	}
	return "server time"
}

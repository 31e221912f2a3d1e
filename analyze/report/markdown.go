package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// WriteMarkdown writes report.md, which reads well in a terminal as it is.
func (d *Document) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for _, line := range d.Lines {
		b.WriteString(escape(line) + "\n\n")
	}
	fmt.Fprintf(&b, "# %s: run %s\n\n", verdictWord(d.State), escape(d.Run))
	fmt.Fprintf(&b, "Service %s, %s to %s.\n\n", escape(orUnknown(d.Service)), clock(d.From), clock(d.To))
	section(&b, "Can the measurement be believed?", d.validityTable())
	bullets(&b, "What to do now", d.DoNow)
	section(&b, "By class of requests", d.classTable())
	facts(&b, "The search", d.searchFacts())
	section(&b, "Steps", d.userTable())
	part(&b, "Mean (maximum) of service and machine meanwhile:", d.machineTable())
	section(&b, "Objectives by step", d.objectiveTable())
	part(&b, "Judged once, from the whole ladder:", d.capacityTable())
	part(&b, "Limits on readings, for analysis only:", d.gaugeTable())
	d.breachCard(&b)
	section(&b, "After the rounds: did it hold?", d.phaseTable())
	part(&b, "Part by part:", d.partTable())
	d.attributionSection(&b)
	section(&b, "How throughput grew", d.gainTable())
	part(&b, "Signals that no longer rise with the load:", d.saturationTable())
	if d.Recovery != nil {
		fmt.Fprintf(&b, "## Recovery\n\n%s\n\n", escape(capital(d.Recovery.words())))
		part(&b, "The same as the baseline?", d.equivalenceTable())
		part(&b, "Baseline beside recovery:", d.recoveryTable())
	}
	d.limitSection(&b)
	section(&b, "All readings", d.readingsTable())
	section(&b, "Conditions", d.conditionsTable())
	bullets(&b, "Notes", d.Notes)
	bullets(&b, "Limits of the claim", d.Claim)
	section(&b, "Queries", d.queryTable())
	fmt.Fprintf(&b, "Written by firstbreach %s.\n", escape(orUnknown(d.Version)))
	_, err := io.WriteString(w, b.String())
	return err
}

// capacityTable lists the capacity objectives.
func (d *Document) capacityTable() table {
	t := table{Head: []string{"objective", "verdict", "why", "owner"}}
	for _, c := range d.Capacity {
		t.row(text(c.Name), state(c.Verdict), text(c.Reason), text(c.Owner))
	}
	return t
}

func (d *Document) breachCard(b *strings.Builder) {
	if d.FirstBreach == nil {
		return
	}
	facts(b, "The first breach", d.breachFacts())
	part(b, "Beside it, as clues:", d.besideTable())
}

func (d *Document) attributionSection(b *strings.Builder) {
	a := d.Attribution
	if a == nil {
		return
	}
	fmt.Fprintf(b, "## Which layer, since when\n\n%s\n\n", escape(a.Text))
	part(b, "When each signal turned:", d.onsetTable())
	part(b, "Explanations:", d.hypothesisTable())
	if len(a.Clues) > 0 {
		b.WriteString("Clues, none of them a cause by itself:\n\n")
		for _, c := range a.Clues {
			fmt.Fprintf(b, "- %s\n", escape(c))
		}
		b.WriteString("\n")
	}
}

func (d *Document) limitSection(b *strings.Builder) {
	l := d.Limits
	if l == nil {
		return
	}
	b.WriteString("## Admission limits\n\n")
	if l.Reason != "" {
		fmt.Fprintf(b, "None: %s.\n\n", escape(l.Reason))
	}
	part(b, "What to set:", d.limitTable())
	if d.Verified != nil {
		fmt.Fprintf(b, "Tried: **%s**. %s\n\n", verdictWord(d.Verified.Verdict), escape(d.Verified.Text))
	}
	for _, s := range l.Snippets {
		fmt.Fprintf(b, "%s. %s\n\n```\n%s\n```\n\n", escape(s.For), escape(s.Note), s.Text)
	}
}

// fact is a named value.
type fact struct{ Name, Value string }

// breachFacts are the lines of the breach card.
func (d *Document) breachFacts() []fact {
	b := d.FirstBreach
	o, _ := d.objectiveNamed(b.Objective)
	r := d.resultAt(b.Level(), b.Class, b.Objective)
	var rounds []string
	for _, x := range r.PerRound {
		rounds = append(rounds, fmt.Sprintf("round %d: %d of %d", x.Round, x.Bad, x.Total))
	}
	between := fmt.Sprintf("at or below %s; no lower step is known to have held", b.Level().Words())
	if l, ok := b.LastOKLevel(); ok {
		between = fmt.Sprintf("above %s, at or below %s", l.Words(), b.Level())
	}
	if undecided := b.undecided(); len(undecided) > 0 {
		between += fmt.Sprintf(" (undecided: %s)", level.List(undecided))
	}
	facts := []fact{
		{"Objective", b.Objective + ", " + o.Text + ofClass(b.Class)},
		{"Between", between},
		{"Missed", r.missed()},
		{"Of these", fmt.Sprintf("%s slow, %s failed", grouped(b.Slow), grouped(b.Failed))},
		{"Rounds", fmt.Sprintf("%d of %d over the allowance (%s)", b.RoundsBreached, b.Rounds, strings.Join(rounds, ", "))},
		{"Certainty", fmt.Sprintf("p %s after correction for all objectives, φ = %s", optional(r.PBreachHolm, pValue), significant(r.Dispersion))},
		{"That step began", clock(b.Began)},
		{"It broke within", d.onsetFact()},
		{"First abnormal layer", orUndetermined(b.FirstLayer)},
		{"Owner", orNone(b.Owner)},
		{"Action", orNone(b.Action)},
	}
	if b.Runbook != "" {
		facts = append(facts, fact{"Runbook", b.Runbook})
	}
	return facts
}

// onsetFact says when the objective broke, in every round that shows it.
func (d *Document) onsetFact() string {
	var out []string
	for _, o := range d.Attribution.Onsets {
		for _, r := range o.Rounds {
			if o.Layer == "user" && o.Signal == d.FirstBreach.Objective {
				out = append(out, fmt.Sprintf("round %d: %s", r.Round, r.between()))
			}
		}
	}
	return orUnknown(strings.Join(out, ", "))
}

func orUndetermined(s string) string {
	if s == "" {
		return "undetermined"
	}
	return s
}

// pValue writes a probability; very small ones only as such.
func pValue(p float64) string {
	if p < 1e-6 {
		return "under 0.000001"
	}
	return "= " + significant(p)
}

// besideTable lists the readings at the breach.
func (d *Document) besideTable() table {
	t := table{Head: []string{"signal", "layer", "before", "at the breach", "limit crossed"}}
	for _, x := range d.FirstBreach.Beside {
		before := "–"
		if x.Before != nil {
			before = value(*x.Before, x.Unit)
		}
		now := Reading{Unit: x.Unit, Mean: x.Mean, Max: x.Max}.short()
		t.row(text(plain(x.Signal)), text(x.Layer), num(before), num(now), text(strings.Join(x.Crossed, ", ")))
	}
	return t
}

func orNone(s string) string {
	if s == "" {
		return "none is named in the SLO file"
	}
	return s
}

func orUnknown(s string) string {
	if s == "" {
		return "(unknown)"
	}
	return s
}

func section(b *strings.Builder, title string, t table) {
	if len(t.Rows) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	writeTable(b, t)
}

// part is a further table of a section.
func part(b *strings.Builder, title string, t table) {
	if len(t.Rows) == 0 {
		return
	}
	b.WriteString(title + "\n\n")
	writeTable(b, t)
}

// facts is a section of named values.
func facts(b *strings.Builder, title string, lines []fact) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for _, f := range lines {
		fmt.Fprintf(b, "- %s: %s\n", f.Name, escape(f.Value))
	}
	b.WriteString("\n")
}

func bullets(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", escape(l))
	}
	b.WriteString("\n")
}

// writeTable pads the columns, so that the table reads without being rendered. The last column is
// left ragged: its texts are long.
func writeTable(b *strings.Builder, t table) {
	widths := make([]int, len(t.Head))
	left := make([]bool, len(t.Head))
	for i, h := range t.Head {
		widths[i] = max(3, utf8.RuneCountInString(h))
	}
	rows := make([][]string, len(t.Rows))
	for r, row := range t.Rows {
		for i, c := range row {
			s := escape(mark(c))
			if c.Code {
				s = codeSpan(c.Text)
			}
			rows[r] = append(rows[r], s)
			left[i] = left[i] || c.Left
			if i < len(t.Head)-1 {
				widths[i] = max(widths[i], utf8.RuneCountInString(s))
			}
		}
	}
	writeRow(b, t.Head, widths, left)
	b.WriteString("|")
	for i, w := range widths {
		if left[i] {
			b.WriteString(strings.Repeat("-", w+2) + "|")
		} else {
			b.WriteString(strings.Repeat("-", w+1) + ":|")
		}
	}
	b.WriteString("\n")
	for _, row := range rows {
		writeRow(b, row, widths, left)
	}
	b.WriteString("\n")
	if len(t.Notes) > 0 {
		for _, n := range t.Notes {
			fmt.Fprintf(b, "- %s\n", escape(n))
		}
		b.WriteString("\n")
	}
}

// mark makes a breach stand out without colour.
func mark(c cell) string {
	if c.State == verdict.Breach || c.State == verdict.NotHeld {
		return "**" + c.Text + "**"
	}
	return c.Text
}

func writeRow(b *strings.Builder, cells []string, widths []int, left []bool) {
	b.WriteString("|")
	for i, c := range cells {
		pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(c)))
		if left[i] {
			b.WriteString(" " + c + pad + " |")
		} else {
			b.WriteString(" " + pad + c + " |")
		}
	}
	b.WriteString("\n")
}

// escape keeps a text from being read as Markdown or HTML. It leaves alone what is harmless inside
// a sentence, so that names with underscores stay legible in a terminal.
func escape(s string) string {
	if !strings.ContainsAny(s, "\r\n|<>`]") {
		return s
	}
	return strings.NewReplacer("\r", " ", "\n", " ", "|", `\|`, "<", "&lt;", ">", "&gt;", "`", "'", "](", "] (").Replace(s)
}

// codeSpan is a text shown as it is.
func codeSpan(s string) string {
	return "`" + strings.NewReplacer("\r", " ", "\n", " ", "|", `\|`, "`", "'").Replace(s) + "`"
}

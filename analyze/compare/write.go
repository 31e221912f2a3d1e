package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"firstbreach/internal/atomicfile"
	"firstbreach/internal/figures"
)

// The files that WriteDir writes.
const (
	FileJSON = "comparison.json"
	FileMD   = "comparison.md"
)

// WriteDir writes both files into dir, making it where it is missing.
func (r *Result) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the comparison's directory: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", FileJSON, err)
	}
	if err := atomicfile.Write(filepath.Join(dir, FileJSON), append(text, '\n')); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	var md strings.Builder
	if err := r.WriteMarkdown(&md); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, FileMD), []byte(md.String())); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

// Line is the outcome in one line.
func (r *Result) Line() string {
	return fmt.Sprintf("%s against %s: %s (%s).", r.B, r.A, strings.ReplaceAll(string(r.Outcome), "_", " "), r.Reason)
}

// WriteMarkdown writes the comparison for a terminal or a pull request.
func (r *Result) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", r.Line())
	if len(r.Differences) > 0 {
		b.WriteString("What differs between the runs:\n\n| condition | A | B | declared |\n|---|---|---|---|\n")
		for _, d := range r.Differences {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(d.Key), cell(d.A), cell(d.B), map[bool]string{true: "yes", false: "**no**"}[d.Intended])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "First breach: A %s; B %s.", r.FirstBreach.A, r.FirstBreach.B)
	if f := r.FirstBreach; f.P != nil {
		fmt.Fprintf(&b, " By round: A %s; B %s (p = %s; so few rounds can't go below %s).", strings.Join(f.RoundsA, ", "), strings.Join(f.RoundsB, ", "), number(*f.P), number(*f.PFloor))
		if f.Suspected != "" {
			fmt.Fprintf(&b, " It %s.", f.Suspected)
		}
	}
	b.WriteString("\n\n")
	if r.Slots != nil {
		fmt.Fprintf(&b, "Slots or compute: %s.\n\n", r.Slots.Finding)
	}
	if len(r.Measures) > 0 {
		fmt.Fprintf(&b, "Over the levels %s, B against A:\n\n| measure | change | 95 %% CI | p (Holm) | margin | outcome |\n|---|---|---|---|---|---|\n", strings.Join(r.Levels, ", "))
		for _, m := range r.Measures {
			b.WriteString(m.row())
		}
		b.WriteByte('\n')
		for _, m := range r.Measures {
			if m.Outcome == Regression || m.Outcome == Improvement {
				fmt.Fprintf(&b, "%s by level (A → B): %s.\n\n", m.Name, m.steps())
			}
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m Measure) row() string {
	change, ci, p, margin := "-", "-", "-", "-"
	if m.Effect != nil {
		change = m.percent(*m.Effect)
	}
	if m.CI != nil {
		ci = m.percent(m.CI[0]) + " to " + m.percent(m.CI[1])
	}
	if m.PHolm != nil {
		p, margin = number(*m.PHolm), strings.TrimPrefix(m.percent(m.Margin), "+")
	}
	outcome := strings.ReplaceAll(string(m.Outcome), "_", " ")
	if m.Reason != "" {
		outcome += ": " + m.Reason
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", cell(m.Name), change, ci, p, margin, outcome)
}

func (m Measure) percent(v float64) string {
	unit := " %"
	if m.Unit == "share" {
		unit = " points"
	}
	return fmt.Sprintf("%+.3g%s", 100*v+0, unit)
}

func (m Measure) steps() string {
	var out []string
	for _, s := range m.PerStep {
		if s.A != nil && s.B != nil {
			out = append(out, fmt.Sprintf("%s: %s → %s", s.Level, number(*s.A), number(*s.B)))
		}
	}
	return strings.Join(out, "; ")
}

func number(v float64) string {
	if v != 0 && math.Abs(v) < 1e-4 {
		return fmt.Sprintf("%.1e", v)
	}
	return fmt.Sprintf("%s", figures.Write(v, 3))
}

// cell keeps a value from ending its table cell.
func cell(s string) string {
	s = strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
	if r := []rune(s); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return s
}

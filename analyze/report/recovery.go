package report

import (
	"fmt"

	"firstbreach/analyze/verdict"
)

// RecoveryMeasure is one quantity, recovery against baseline.
type RecoveryMeasure struct {
	Name   string        `json:"name"`
	Before *float64      `json:"baseline"`
	After  *float64      `json:"recovery"`
	CI     *[2]float64   `json:"ratio_ci"` // 90 %
	Margin float64       `json:"margin"`
	State  verdict.State `json:"state"`
	Reason string        `json:"reason,omitempty"`
}

// RecoveryObjective is the verdict on a recovery objective.
type RecoveryObjective struct {
	Name    string        `json:"name"`
	Within  float64       `json:"within"`
	Verdict verdict.State `json:"verdict"` // held, not_held, undecided
	Reason  string        `json:"reason"`
	Owner   string        `json:"owner,omitempty"`
	Action  string        `json:"action,omitempty"`
}

// fill puts the verdict into the comparison.
func (r *Recovery) fill(v *verdict.Recovery) {
	r.Measures, r.Objectives, r.Held = []RecoveryMeasure{}, []RecoveryObjective{}, []string{}
	if v == nil {
		return
	}
	r.State, r.Reason, r.Held = v.State, v.Reason, list(v.Held)
	if v.Time != nil {
		r.Time = &[2]*float64{number(&v.Time.From), number(&v.Time.To)}
		if v.Censored {
			r.Time[1] = nil
		}
	}
	for _, m := range v.Measures {
		x := RecoveryMeasure{Name: m.Name, Before: number(&m.Before), After: number(&m.After), Margin: m.Margin, State: m.State, Reason: m.Reason}
		if m.Low != nil {
			x.CI = &[2]float64{round(*m.Low), round(*m.High)}
		}
		r.Measures = append(r.Measures, x)
	}
	for _, o := range v.Objectives {
		r.Objectives = append(r.Objectives, RecoveryObjective{o.Name, o.Within, o.Verdict, o.Reason, o.Owner, o.Action})
	}
}

// words is the recovery in one sentence.
func (r *Recovery) words() string {
	s := verdictWord(r.State)
	if r.Time != nil && r.State != verdict.NotMeasured {
		switch {
		case r.Time[1] == nil:
			s += fmt.Sprintf(", in band later than %s after the load", seconds(*r.Time[0]))
		case *r.Time[0] == 0:
			s += fmt.Sprintf(", in band within %s of the end of the load", seconds(*r.Time[1]))
		default:
			s += fmt.Sprintf(", in band %s to %s after the load", seconds(*r.Time[0]), seconds(*r.Time[1]))
		}
	}
	if r.Reason != "" {
		s += " (" + r.Reason + ")"
	}
	return s + "."
}

// equivalenceTable lists what was compared, and the recovery objectives.
func (d *Document) equivalenceTable() table {
	t := table{Head: []string{"compared", "verdict", "recovery ÷ baseline, 90 % interval", "margin", "why"}}
	if d.Recovery == nil {
		return t
	}
	for _, m := range d.Recovery.Measures {
		ratio := noData
		if m.CI != nil {
			ratio = fmt.Sprintf("%.2f–%.2f", m.CI[0], m.CI[1])
		}
		t.row(text(m.Name), state(m.State), num(ratio), num(fmt.Sprintf("%.2f–%.2f", 1/m.Margin, m.Margin)), text(m.Reason))
	}
	for _, o := range d.Recovery.Objectives {
		t.row(text(o.Name+": back within "+seconds(o.Within)), state(o.Verdict), num(""), num(""), text(o.Reason))
	}
	for _, h := range d.Recovery.Held {
		t.note(capital(h) + ".")
	}
	return t
}

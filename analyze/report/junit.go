package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"firstbreach/analyze/verdict"
	"firstbreach/internal/level"
)

// The elements of JUnit's XML that CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr,omitempty"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		Out        string          `xml:"system-out"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		Failure *junitReason `xml:"failure"`
		Error   *junitReason `xml:"error"`
		Skipped *junitReason `xml:"skipped"`
	}
	junitReason struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes junit.xml: one test case for each objective in each step of the ladder, and one
// for each capacity objective and each phase after the rounds. A breach is a failure; inconclusive is skipped, since it says nothing
// against the service; invalid and no_data are errors, since the measurement failed.
func (d *Document) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: "firstbreach " + d.Run, Out: strings.Join(d.Lines, "\n")}
	suite.Properties = []junitProperty{{"run", d.Run}, {"service", d.Service}, {"state", string(d.State)}}
	if d.From != nil {
		suite.Timestamp = d.From.Format("2006-01-02T15:04:05")
		if d.To != nil {
			suite.Time = strconv.FormatFloat(d.To.Sub(*d.From).Seconds(), 'f', 3, 64)
		}
	}
	for _, s := range d.ladder() {
		for _, o := range s.Objectives {
			suite.add(d.junitCase(s, o))
		}
	}
	for _, c := range d.Capacity {
		suite.add(d.junitCapacity(c))
	}
	for _, p := range d.Phases {
		suite.add(d.junitPhase(p))
	}
	all := junitSuites{Name: "firstbreach", Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Skipped: suite.Skipped, Suites: []junitSuite{suite}}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// class is a name that CI systems split at its dots, so a level has none.
func (d *Document) class(at level.Level) string {
	service := d.Service
	if service == "" {
		service = "service"
	}
	return fmt.Sprintf("%s.%s_%s", service, at.Kind(), strings.ReplaceAll(strings.TrimSuffix(at.String(), "/s"), ".", "_"))
}

func (d *Document) junitCase(s Step, o ObjectiveResult) junitCase {
	def, _ := d.objectiveNamed(o.Name)
	class := d.class(s.Level())
	if s.Class != "" {
		class += "." + s.Class
	}
	c := junitCase{Class: class, Name: o.Name + ": " + def.Text}
	switch o.Verdict {
	case verdict.OK:
	case verdict.Breach:
		c.Failure = &junitReason{Message: o.missed(), Type: "breach",
			Text: fmt.Sprintf("%d of %d rounds over the allowance. %s", o.RoundsOver, len(o.PerRound), ownerLine(def.Owner, def.Action, def.Runbook))}
	case verdict.Inconclusive:
		c.Skipped = &junitReason{Message: "inconclusive: " + o.Reason}
	default:
		why := o.Reason
		if len(s.Reasons) > 0 && !s.Valid {
			why = s.Reasons[0]
		}
		c.Error = &junitReason{Message: why, Type: string(o.Verdict)}
	}
	return c
}

func (d *Document) junitCapacity(x Capacity) junitCase {
	def, _ := d.objectiveNamed(x.Name)
	c := junitCase{Class: d.class(level.Level{Concurrency: x.MinConcurrency}), Name: x.Name + ": " + def.Text}
	switch x.Verdict {
	case verdict.NotHeld:
		c.Failure = &junitReason{Message: x.Reason, Type: "breach", Text: ownerLine(x.Owner, x.Action, def.Runbook)}
	case verdict.Undecided:
		c.Skipped = &junitReason{Message: "undecided: " + x.Reason}
	}
	return c
}

// missed says how many requests missed an objective.
func (o ObjectiveResult) missed() string {
	if o.Share == nil {
		return noData
	}
	return fmt.Sprintf("%s of %s missed it (%s, 95 %% CI %s; allowed %s)", grouped(o.Bad), counted(o.Total, "request"), percent(*o.Share), interval(o.CI), percent(o.Allowance))
}

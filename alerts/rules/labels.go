package rules

import (
	"maps"
	"net/url"
	"strings"

	"firstbreach/internal/slo"
)

// The names of the alerts. All begin alike, so that one matcher finds them.
const (
	AlertBurn      = "FirstbreachErrorBudgetBurn"
	AlertThreshold = "FirstbreachThresholdCrossed"
	AlertCapacity  = "FirstbreachCapacityExceeded"
	AlertRecovery  = "FirstbreachNotRecovered"
	AlertUnknown   = "FirstbreachObjectiveNotMeasured"
	AlertDown      = "FirstbreachTargetDown"
	AlertAbsent    = "FirstbreachTargetAbsent"
)

// The labels that every alert has; routing and inhibition stand on them, so that none may be missing.
const (
	LabelService  = "service"
	LabelSLO      = "slo"
	LabelLayer    = "layer"
	LabelOwner    = "owner"
	LabelSeverity = "severity"
	LabelLong     = "long"
	LabelShort    = "short"
	LabelSource   = "source"
)

// The annotations.
const (
	noteSummary     = "summary"
	noteDescription = "description"
	noteAction      = "action"
	noteRunbook     = "runbook_url"
	noteDashboard   = "dashboard_url"
	noteReport      = "report_url"
)

func alertLabels(service string, o slo.Objective, severity string, more map[string]string) map[string]string {
	labels := map[string]string{
		LabelService: service, LabelSLO: o.Name, LabelLayer: string(o.Layer),
		LabelOwner: literal(o.Owner), LabelSeverity: severity,
	}
	maps.Copy(labels, more)
	return labels
}

// annotations are the texts of an alert; summary and description may hold templates.
func (m maker) annotations(o slo.Objective, summary, description string) map[string]string {
	notes := map[string]string{noteSummary: summary, noteDescription: description, noteAction: literal(o.Action)}
	if o.Runbook != "" {
		notes[noteRunbook] = literal(o.Runbook)
	}
	if m.DashboardURL != "" {
		notes[noteDashboard] = literal(strings.TrimRight(m.DashboardURL, "/") + "/d/" + m.file.DashboardUID() + "?var-slo=" + url.QueryEscape(o.Name))
	}
	if m.ReportURL != "" {
		notes[noteReport] = literal(strings.TrimRight(m.ReportURL, "/") + "/services/" + url.PathEscape(m.file.Service) + "/latest")
	}
	return notes
}

// literal keeps a person's text from being read as a template: whoever writes {{ in an action means
// two braces.
func literal(text string) string {
	return strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
}

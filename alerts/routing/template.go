package routing

// MessageTemplates are the texts of notifications: what is wrong, who owns it, what to do and where to look.
const MessageTemplates = `{{ define "firstbreach.title" }}[{{ .Status | toUpper }}{{ if eq .Status "firing" }}:{{ .Alerts.Firing | len }}{{ end }}] {{ .CommonLabels.service }}{{ with .CommonLabels.slo }}/{{ . }}{{ end }} ({{ .CommonLabels.owner }}, {{ .CommonLabels.severity }}){{ end }}

{{ define "firstbreach.text" }}{{ range .Alerts }}{{ .Annotations.summary }}
{{ .Annotations.description }}
Do: {{ .Annotations.action }}
{{ with .Annotations.runbook_url }}Runbook: {{ . }}
{{ end }}{{ with .Annotations.dashboard_url }}Dashboard: {{ . }}
{{ end }}{{ with .Annotations.report_url }}Last report: {{ . }}
{{ end }}
{{ end }}{{ end }}
`

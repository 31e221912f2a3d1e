package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"firstbreach/analyze/window"
)

// annotation is one of Grafana's, as its API has it: times in milliseconds.
type annotation struct {
	ID   int64    `json:"id,omitempty"`
	From int64    `json:"time"`
	To   int64    `json:"timeEnd"`
	Text string   `json:"text"`
	Tags []string `json:"tags"`
}

// annotate makes each breach an annotation of Grafana, once. Windows overlap and bins differ in width, so
// that a breach begins and ends a little differently in each report: the annotation of the same service and
// objective that overlaps or touches it is the same breach, and is widened to hold both.
func (s *Server) annotate(ctx context.Context, c *Config, r Report, res *window.Result) error {
	a := announce(r, res, c.ExternalURL)
	for _, b := range a.Breaches {
		end := res.To
		if b.End != nil {
			end = b.End[1]
		}
		want := annotation{From: b.Onset[0].UnixMilli(), To: end.UnixMilli(), Text: b.Objective + " broke its SLO",
			Tags: []string{"firstbreach", "service:" + r.Service, "slo:" + b.Objective}}
		if b.Owner != "" {
			want.Text += fmt.Sprintf(". Owner: %s. %s", b.Owner, b.Action)
		}
		if a.ReportURL != "" {
			want.Text += " " + a.ReportURL
		}
		if err := s.annotateOne(ctx, c.Grafana, want); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) annotateOne(ctx context.Context, g *Grafana, want annotation) error {
	find := url.Values{"tags": want.Tags, "from": {strconv.FormatInt(want.From, 10)}, "to": {strconv.FormatInt(want.To, 10)}, "limit": {"100"}, "type": {"annotation"}}
	text, err := s.send(ctx, http.MethodGet, g.URL+"/api/annotations?"+find.Encode(), g.TokenFile, nil, nil)
	if err != nil {
		return err
	}
	var list []annotation
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("Grafana's answer is no list of annotations: %w", err) //nolint:staticcheck // a name
	}
	for _, have := range list {
		if have.From > want.To || max(have.From, have.To) < want.From {
			continue
		}
		from, to := min(have.From, want.From), max(have.To, want.To)
		if from == have.From && to == have.To {
			return nil
		}
		change := map[string]int64{"time": from, "timeEnd": to}
		_, err := s.send(ctx, http.MethodPatch, g.URL+"/api/annotations/"+strconv.FormatInt(have.ID, 10), g.TokenFile, change, nil)
		return err
	}
	_, err = s.send(ctx, http.MethodPost, g.URL+"/api/annotations", g.TokenFile, want, nil)
	return err
}

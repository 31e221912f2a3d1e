package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"firstbreach/analyze/window"
	"firstbreach/internal/atomicfile"
)

// Announcement is what a webhook is sent.
type Announcement struct {
	Version   string       `json:"version"`
	ID        string       `json:"id"` // the same whenever the same report is sent again
	Service   string       `json:"service"`
	Schedule  string       `json:"schedule"`
	From      time.Time    `json:"from"`
	To        time.Time    `json:"to"`
	Verdict   window.State `json:"verdict"`
	Headline  []string     `json:"headline"`
	ReportURL string       `json:"report_url,omitempty"`
	Breaches  []Breach     `json:"breaches"`
}

// Breach is a stretch in which an objective was broken.
type Breach struct {
	Objective string        `json:"objective"`
	Onset     [2]time.Time  `json:"onset"`
	End       *[2]time.Time `json:"end,omitempty"`
	Layer     string        `json:"first_layer,omitempty"`
	Owner     string        `json:"owner,omitempty"`
	Action    string        `json:"action,omitempty"`
}

func announce(r Report, res *window.Result, external string) Announcement {
	a := Announcement{Version: APIVersion, ID: r.Service + "/" + r.Name(), Service: r.Service, Schedule: r.Schedule, From: res.From, To: res.To,
		Verdict: r.Verdict, Headline: r.Lines, Breaches: []Breach{}}
	if external != "" {
		a.ReportURL = external + reportPath(r)
	}
	for _, o := range res.Objectives {
		for _, b := range o.Breaches {
			a.Breaches = append(a.Breaches, Breach{Objective: o.Name, Onset: b.Onset, End: b.End, Layer: b.Layer, Owner: o.Owner, Action: o.Action})
		}
	}
	return a
}

func reportPath(r Report) string {
	return "/reports/" + url.PathEscape(r.Service) + "/" + url.PathEscape(r.Name()) + "/" + window.HTMLFile
}

// delivery is one place that a report goes to.
type delivery struct {
	kind, name string
	send       func(ctx context.Context, r Report, res *window.Result) error
}

// key stands for a delivery in delivered.json, without its address.
func (d delivery) key() string {
	sum := sha256.Sum256([]byte(d.name))
	return d.kind + " " + hex.EncodeToString(sum[:8])
}

func (s *Server) deliveries(c *Config) []delivery {
	var out []delivery
	for _, folder := range c.Folders {
		out = append(out, delivery{"folder", folder, func(_ context.Context, r Report, res *window.Result) error {
			return window.WriteFiles(filepath.Join(folder, r.Service, r.Name()), res)
		}})
	}
	for _, hook := range c.Webhooks {
		out = append(out, delivery{"webhook", hook.URL, func(ctx context.Context, r Report, res *window.Result) error {
			a := announce(r, res, c.ExternalURL)
			_, err := s.send(ctx, http.MethodPost, hook.URL, hook.TokenFile, a, http.Header{"Idempotency-Key": {a.ID}})
			return err
		}})
	}
	if c.Grafana != nil {
		out = append(out, delivery{"grafana", c.Grafana.URL, func(ctx context.Context, r Report, res *window.Result) error {
			return s.annotate(ctx, c, r, res)
		}})
	}
	return out
}

// annotate makes each breach an annotation of Grafana, once: a tag that no other breach has tells
// whether it is there.
func (s *Server) annotate(ctx context.Context, c *Config, r Report, res *window.Result) error {
	a := announce(r, res, c.ExternalURL)
	for _, b := range a.Breaches {
		id := fmt.Sprintf("firstbreach-id:%s/%s/%d", r.Service, b.Objective, b.Onset[1].UnixMilli())
		have, err := s.send(ctx, http.MethodGet, c.Grafana.URL+"/api/annotations?limit=1&tags="+url.QueryEscape(id), c.Grafana.TokenFile, nil, nil)
		if err != nil {
			return err
		}
		var list []json.RawMessage
		if err := json.Unmarshal(have, &list); err != nil {
			return fmt.Errorf("Grafana's answer is no list of annotations: %w", err) //nolint:staticcheck // a name
		}
		if len(list) > 0 {
			continue
		}
		end := res.To
		if b.End != nil {
			end = b.End[1]
		}
		text := b.Objective + " broke its SLO"
		if b.Owner != "" {
			text += fmt.Sprintf(". Owner: %s. %s", b.Owner, b.Action)
		}
		if a.ReportURL != "" {
			text += " " + a.ReportURL
		}
		note := map[string]any{"time": b.Onset[0].UnixMilli(), "timeEnd": end.UnixMilli(), "text": text,
			"tags": []string{"firstbreach", "service:" + r.Service, "slo:" + b.Objective, id}}
		if _, err := s.send(ctx, http.MethodPost, c.Grafana.URL+"/api/annotations", c.Grafana.TokenFile, note, nil); err != nil {
			return err
		}
	}
	return nil
}

// send makes one request and is an error unless it is answered with a 2xx.
func (s *Server) send(ctx context.Context, method, to, tokenFile string, body any, head http.Header) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for k, v := range head {
		req.Header[k] = v
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if tokenFile != "" {
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := s.client.Do(req)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the address: a webhook's often is its secret
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("answered %s", resp.Status)
	}
	return answer, err
}

// deliver sends a report to every place that hasn't had it, and notes who has.
func (s *Server) deliver(ctx context.Context, c *Config, r Report, res *window.Result) error {
	path := filepath.Join(shelf(c.Reports).dir(r), deliveredFile)
	had := map[string]bool{}
	if text, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(text, &had) // one that can't be read: send again, the receivers can tell
	}
	var errs []error
	for _, d := range s.deliveries(c) {
		key := d.key()
		if had[key] {
			continue
		}
		if err := d.send(ctx, r, res); err != nil {
			s.metrics.failures.WithLabelValues("deliver_" + d.kind).Inc()
			errs = append(errs, fmt.Errorf("%s of %s to %s %s: %w", r.Name(), r.Service, d.kind, redacted(d.name), err))
			continue
		}
		had[key] = true
		text, err := json.Marshal(had)
		if err == nil {
			err = atomicfile.Write(path, text)
		}
		if err != nil {
			s.metrics.failures.WithLabelValues("write").Inc()
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// redacted is an address without its password and its path, in which webhooks often carry a secret.
func redacted(name string) string {
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return name
}

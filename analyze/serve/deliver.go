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
	resp, err := s.Client.Do(req)
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
	had := s.sent[path] // not nil when it couldn't be noted the last time
	var errs []error
	if had != nil {
		errs = append(errs, s.noteDelivered(path, had))
	} else {
		had = map[string]bool{}
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &had) != nil || had == nil {
			had = map[string]bool{} // can't be read: send again, the receivers can tell
		}
	}
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
		errs = append(errs, s.noteDelivered(path, had))
	}
	return errors.Join(errs...)
}

// noteDelivered notes on disk who had a report, or in memory for as long as the disk takes nothing.
func (s *Server) noteDelivered(path string, had map[string]bool) error {
	text, err := json.Marshal(had)
	if err == nil {
		err = s.Note(path, text)
	}
	if err != nil {
		s.metrics.failures.WithLabelValues("write").Inc()
		s.sent[path] = had
		return err
	}
	delete(s.sent, path)
	return nil
}

// redacted is an address without its password and its path, in which webhooks often carry a secret.
func redacted(name string) string {
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return name
}

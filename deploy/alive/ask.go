package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"firstbreach/internal/signal"
	"firstbreach/loadgen/wire"
)

// wait asks twice a second until the answer is yes. A server that isn't up yet is no answer; the last
// error is told where none came in time.
func wait(ctx context.Context, limit time.Duration, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := ask(ctx)
		if ok && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("waited %s for %s; the last error: %w", limit, what, last)
			}
			return fmt.Errorf("waited %s for %s", limit, what)
		case <-tick.C:
		}
	}
}

// askTime bounds one question to a server.
const askTime = 10 * time.Second

func get(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", address, answer.Status, text)
	}
	return text, err
}

// value is the one value of an expression now; known is false where there is none.
func (s *stack) value(ctx context.Context, expr string) (v float64, known bool, err error) {
	client, err := api.NewClient(api.Config{Address: s.url("prometheus")})
	if err != nil {
		return 0, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, _, _, err := promv1.NewAPI(client).Query(ctx, expr, time.Time{})
	if err != nil {
		return 0, false, err
	}
	switch r, ok := answer.(model.Vector); {
	case !ok:
		return 0, false, fmt.Errorf("%s is a %s, not a vector", expr, answer.Type())
	case len(r) > 1:
		return 0, false, fmt.Errorf("%s has %d values, not one", expr, len(r))
	case len(r) == 1:
		return float64(r[0].Value), true, nil
	}
	return 0, false, nil
}

// alert is one as the Alertmanager tells it, on its API and to a webhook.
type alert struct {
	Labels, Annotations map[string]string
}

func (a alert) String() string {
	return fmt.Sprintf("%s %s; owner: %s; %s; do: %s", a.Labels["alertname"], a.Labels["severity"], a.Labels["owner"], a.Annotations["summary"], a.Annotations["action"])
}

func (a alert) has(labels map[string]string) bool {
	for name, value := range labels {
		if a.Labels[name] != value {
			return false
		}
	}
	return true
}

// held is an alert with what the Alertmanager does about it.
type held struct {
	alert
	Status struct{ InhibitedBy []string }
}

// alerts are those of a name that the Alertmanager has now, and that match.
func (s *stack) alerts(ctx context.Context, name string, matchers ...string) ([]held, error) {
	q := url.Values{"filter": append([]string{fmt.Sprintf("alertname=%q", name)}, matchers...)}
	text, err := get(ctx, s.url("alertmanager")+"/api/v2/alerts?"+q.Encode())
	if err != nil {
		return nil, err
	}
	var list []held
	return list, json.Unmarshal(text, &list)
}

// probeFailures is the share of all the probe's requests that were not answered, on its own page.
func (s *stack) probeFailures(ctx context.Context) (float64, error) {
	text, err := get(ctx, s.url("probe")+"/metrics")
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	var all, bad float64
	for _, m := range families[signal.LoadgenRequests].GetMetric() {
		all += m.GetCounter().GetValue()
		if outcome(m) != string(wire.OK) {
			bad += m.GetCounter().GetValue()
		}
	}
	if all == 0 {
		return 0, fmt.Errorf("the probe has sent nothing")
	}
	return bad / all, nil
}

func outcome(m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == signal.LabelOutcome {
			return l.GetValue()
		}
	}
	return ""
}

// crowd is n clients that ask the engine again as soon as they have an answer, until ctx ends; the
// channel is closed when all have gone.
func (s *stack) crowd(ctx context.Context, n int) <-chan struct{} {
	const question = `{"model":"sim","max_tokens":10,"messages":[{"role":"user","content":"How are you?"}]}`
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url("sim")+"/v1/chat/completions", strings.NewReader(question))
				if err != nil {
					return
				}
				r.Header.Set("Content-Type", "application/json")
				if answer, err := client.Do(r); err == nil { // that some fail is the point
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
			}
		})
	}
	gone := make(chan struct{})
	go func() {
		clients.Wait()
		client.CloseIdleConnections()
		close(gone)
	}()
	return gone
}

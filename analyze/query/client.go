package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"firstbreach/internal/promapi"
)

// tries bounds how often one request is sent.
const tries = 3

// patient sends a request again after a network error or a 503, which is how Prometheus says that
// it ran out of time or isn't ready. Every request here only reads.
type patient struct {
	api.Client
	pause time.Duration
}

func (p patient) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	pause := p.pause
	for try := 1; ; try++ {
		resp, body, err := p.Client.Do(ctx, req)
		passing := err != nil || resp.StatusCode == http.StatusServiceUnavailable
		if !passing || try == tries || ctx.Err() != nil {
			return resp, body, err
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, nil, err
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, ctx.Err()
		}
		pause *= 2
	}
}

// Ping is an error unless a Prometheus answers the cheapest of queries.
func Ping(ctx context.Context, client api.Client) error {
	_, _, _, err := v1.NewAPI(client).Query(ctx, "1", time.Time{})
	return err
}

// prometheus is the part of the HTTP API that is used here.
type prometheus struct {
	client  api.Client
	api     v1.API
	address string // for messages
}

func connect(o Options) (*prometheus, error) {
	client := o.Client
	if client == nil {
		var err error
		if client, err = promapi.New(o.URL, ""); err != nil {
			return nil, err
		}
	}
	address := client.URL("", nil).Redacted()
	client = patient{client, o.Pause}
	return &prometheus{client, v1.NewAPI(client), address}, nil
}

// instant evaluates an expression at one time; the zero time is the server's own.
func (p *prometheus) instant(ctx context.Context, expr string, at time.Time) (response, error) {
	form := url.Values{"query": {expr}}
	if !at.IsZero() {
		form.Set("time", timestamp(at))
	}
	return p.query(ctx, "/api/v1/query", form)
}

// ranged evaluates an expression at every step of a range. A sample counts for as long as lookback; when
// that is 0, for as long as the server is set to.
func (p *prometheus) ranged(ctx context.Context, expr string, r v1.Range, lookback time.Duration) (response, error) {
	form := url.Values{
		"query": {expr}, "start": {timestamp(r.Start)}, "end": {timestamp(r.End)}, "step": {inSeconds(r.Step)},
	}
	if lookback > 0 {
		form.Set("lookback_delta", inSeconds(lookback)) // Prometheus, Thanos
		form.Set("max_lookback", inSeconds(lookback))   // VictoriaMetrics
	}
	return p.query(ctx, "/api/v1/query_range", form)
}

func inSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// labelValues lists the values of a label on the series of a selector.
func (p *prometheus) labelValues(ctx context.Context, label, selector string, from, to time.Time) (model.LabelValues, []string, []string, error) {
	values, warnings, infos, err := p.api.LabelValues(ctx, label, []string{selector}, from, to)
	return values, warnings, infos, err
}

func timestamp(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', -1, 64)
}

// query sends a form, as POST because expressions are long, or as GET to what takes no POST.
func (p *prometheus) query(ctx context.Context, endpoint string, form url.Values) (response, error) {
	u := p.client.URL(endpoint, nil)
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return response{}, err
	}
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, body, err := p.client.Do(ctx, post)
	if err == nil && (resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusNotImplemented) {
		u.RawQuery = form.Encode()
		get, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return response{}, err
		}
		resp, body, err = p.client.Do(ctx, get)
		if err != nil {
			return response{}, err
		}
	}
	if err != nil {
		return response{}, err
	}
	return answered(resp.StatusCode, body)
}

// answered reads an answer. Errors of the query come as 400, 422 or 503 with a reason; anything
// else that isn't a success comes from whatever stands in between.
func answered(status int, body []byte) (response, error) {
	r, err := decode(body)
	switch {
	case status/100 == 2 && err != nil:
		return r, &v1.Error{Type: v1.ErrBadResponse, Msg: err.Error()}
	case r.refused != nil && err == nil:
		return r, r.refused
	case status/100 == 5:
		return r, &v1.Error{Type: v1.ErrServer, Msg: fmt.Sprintf("server error: %d", status)}
	case status/100 != 2:
		return r, &v1.Error{Type: v1.ErrClient, Msg: fmt.Sprintf("client error: %d", status)}
	}
	return r, nil
}

// explain says what to do about an error of the API.
func explain(err error, address string) error {
	var refused *v1.Error
	var network *url.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &refused):
		return fmt.Errorf("Prometheus at %s refused the query: %w%s", address, err, advice(refused)) //nolint:staticcheck // a name
	case errors.As(err, &network):
		return fmt.Errorf("Prometheus at %s can't be reached: check that it runs and that the URL is right: %w", address, err) //nolint:staticcheck // a name
	}
	return fmt.Errorf("Prometheus at %s: %w", address, err) //nolint:staticcheck // a name
}

func advice(e *v1.Error) string {
	switch e.Type {
	case v1.ErrTimeout, v1.ErrServer:
		return ": it may be starting, overloaded, or too slow for its --query.timeout; try again"
	case v1.ErrClient, v1.ErrBadResponse:
		return ": check that the URL is the base of a Prometheus HTTP API, and where it asks for credentials that the HTTP client configuration has them"
	}
	return ""
}

// answersItself reports whether the server itself refused: it understood, and said no to this one query.
func answersItself(err error) bool {
	var refused *v1.Error
	return errors.As(err, &refused) && (refused.Type == v1.ErrBadData || refused.Type == v1.ErrExec)
}

package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
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

// connect returns the API and, for messages, its address.
func connect(o Options) (v1.API, string, error) {
	client := o.Client
	if client == nil {
		u, err := url.Parse(o.URL)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, "", fmt.Errorf("%q is not the URL of a Prometheus: write one such as http://127.0.0.1:9090", o.URL)
		}
		if client, err = api.NewClient(api.Config{Address: o.URL}); err != nil {
			return nil, "", fmt.Errorf("client of the Prometheus API: %w", err)
		}
	}
	address := client.URL("", nil).Redacted()
	return v1.NewAPI(patient{client, o.Pause}), address, nil
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
		return ": check that the URL is the base of a Prometheus HTTP API and that it needs no credentials"
	}
	return ""
}

// answersItself reports whether the server itself refused: it understood, and said no to this one query.
func answersItself(err error) bool {
	var refused *v1.Error
	return errors.As(err, &refused) && (refused.Type == v1.ErrBadData || refused.Type == v1.ErrExec)
}

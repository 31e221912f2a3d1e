// Package promapi makes the client of a Prometheus HTTP API from what a person names: its address, and
// the file with what it wants of those who ask. It knows no query.
package promapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/common/config"
)

// New is a client of the Prometheus at a URL. httpConfig names a file with the credentials, headers,
// TLS and proxy that it wants, in the form of Prometheus' own HTTP client configuration; none when "".
func New(address, httpConfig string) (api.Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is not the URL of a Prometheus: write one such as http://127.0.0.1:9090", address)
	}
	c := api.Config{Address: address}
	if httpConfig != "" {
		if c.RoundTripper, err = transport(httpConfig); err != nil {
			return nil, fmt.Errorf("%s can't be used: %w (fix: write it as Prometheus' HTTP client configuration, with keys such as authorization, basic_auth, tls_config and http_headers)", httpConfig, err)
		}
	}
	client, err := api.NewClient(c)
	if err != nil {
		return nil, fmt.Errorf("client of the Prometheus API: %w", err)
	}
	return client, nil
}

func transport(file string) (http.RoundTripper, error) {
	c, text, err := config.LoadHTTPConfigFile(file)
	switch {
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(text)) == 0: // the library takes it for all defaults, redirects off
		return nil, errors.New("is empty")
	}
	return config.NewRoundTripperFromConfig(*c, "prometheus")
}

package run

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"firstbreach/loadgen/plan"
)

// httpClient is for the conditions and for requests that put the target back. No connection of it stays
// open beside those of the load.
func httpClient(t plan.Target) (*http.Client, error) {
	secure, err := t.TLS.Config()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{Proxy: t.ProxyFunc(), TLSClientConfig: secure, DisableKeepAlives: true}}, nil
}

// checkCertificate refuses to begin a run whose every request would fail at the target's certificate.
// A target that can't be reached at all is left to the run: it may be on its way up.
func checkCertificate(ctx context.Context, client *http.Client, target plan.Target) error {
	if !strings.HasPrefix(target.URL, "https://") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, root(target.URL)+"/", nil)
	if err != nil {
		return nil
	}
	res, err := client.Do(req)
	if err == nil {
		res.Body.Close()
		return nil
	}
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var other *tls.CertificateVerificationError
	var alert *net.OpError // what crypto/tls makes of an alert from the other side
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("target.url: the certificate of %s is not valid now: it was issued for %s to %s (renew it, or set the clock)",
			req.URL.Host, day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case errors.As(err, &name):
		return fmt.Errorf("target.url: the certificate of %s is for another name: %w (set target.tls.server_name to a name that it bears)", req.URL.Host, name)
	case errors.As(err, &unknown):
		return fmt.Errorf("target.url: nobody trusted has signed the certificate of %s: %w (name its CA with target.tls.ca_file)", req.URL.Host, unknown)
	case errors.As(err, &other):
		return fmt.Errorf("target.url: the certificate of %s can't be trusted: %w", req.URL.Host, other.Err)
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Errorf("target.url: %s refuses the connection: %w (does it want a client certificate? write target.tls.cert_file and key_file)", req.URL.Host, alert.Err)
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

package run

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firstbreach/loadgen/plan"
)

// certificate makes a self-signed certificate and its PEM file.
func certificate(t *testing.T, until time.Time) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until, DNSNames: []string{"model.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// A certificate that every request would fail at is found before the run starts, and said plainly.
func TestCertificates(t *testing.T) {
	good, goodFile := certificate(t, time.Now().Add(24*time.Hour))
	old, oldFile := certificate(t, time.Now().Add(-time.Hour))
	_, otherFile := certificate(t, time.Now().Add(24*time.Hour))
	tests := map[string]struct {
		certificate tls.Certificate
		tls         plan.TLS
		clientAuth  tls.ClientAuthType
		want        string
	}{
		"trusted by ca_file":         {certificate: good, tls: plan.TLS{CAFile: goodFile}},
		"expired":                    {certificate: old, tls: plan.TLS{CAFile: oldFile}, want: "is not valid now: it was issued for"},
		"another CA":                 {certificate: good, tls: plan.TLS{CAFile: otherFile}, want: "name its CA with target.tls.ca_file"},
		"another name":               {certificate: good, tls: plan.TLS{CAFile: goodFile, ServerName: "elsewhere.test"}, want: "is for another name"},
		"the name of server_name":    {certificate: good, tls: plan.TLS{CAFile: goodFile, ServerName: "model.test"}},
		"not checked":                {certificate: old, tls: plan.TLS{InsecureSkipVerify: true}},
		"a client certificate asked": {certificate: good, tls: plan.TLS{CAFile: goodFile}, clientAuth: tls.RequireAnyClientCert, want: "does it want a client certificate?"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(http.NotFoundHandler())
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{tc.certificate}, ClientAuth: tc.clientAuth}
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.StartTLS()
			defer srv.Close()
			target := plan.Target{URL: srv.URL + "/v1", TLS: tc.tls}
			client, err := httpClient(target)
			if err != nil {
				t.Fatal(err)
			}
			err = checkCertificate(t.Context(), client, target)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

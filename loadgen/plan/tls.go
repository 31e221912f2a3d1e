package plan

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"firstbreach/internal/strictyaml"
)

// TLS is how an https target is spoken to. The zero value trusts what the system trusts.
type TLS struct {
	CAFile             string // PEM certificates that are trusted instead of the system's
	CertFile, KeyFile  string // PEM client certificate and its key; both or none
	ServerName         string // the name that the certificate has to bear; "" is the address's host
	InsecureSkipVerify bool   // any certificate will do
}

// Config reads the files; nil for the zero value.
func (t TLS) Config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	if t.CAFile != "" {
		pool, err := certificates(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("target.tls.ca_file: %s %w", t.CAFile, err)
		}
		c.RootCAs = pool
	}
	if t.CertFile != "" {
		pair, err := clientCertificate(t.CertFile, t.KeyFile, time.Now())
		if err != nil {
			return nil, fmt.Errorf("target.tls.cert_file: %s %w", t.CertFile, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// certificates reads a file of CA certificates.
func certificates(path string) (*x509.CertPool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("can't be read: %w", plainCause(err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		if block, _ := pem.Decode(b); block != nil {
			return nil, fmt.Errorf("holds a %s, no certificate", block.Type)
		}
		return nil, errors.New("holds no PEM certificate")
	}
	return pool, nil
}

// clientCertificate reads a certificate with its key, and refuses one that no server will take at
// that time. Neither file's content is in an error.
func clientCertificate(cert, key string, now time.Time) (tls.Certificate, error) {
	for _, path := range []string{cert, key} {
		f, err := os.Open(path)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("can't be used: %s can't be read: %w", path, plainCause(err))
		}
		f.Close()
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	switch {
	case err != nil:
		return pair, fmt.Errorf("and key_file can't be used together: %w", err)
	case now.After(pair.Leaf.NotAfter):
		return pair, fmt.Errorf("expired on %s", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(pair.Leaf.NotBefore):
		return pair, fmt.Errorf("is not valid before %s", pair.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return pair, nil
}

func (r *reader) tls(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	m := v.Map("ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify")
	if !v.IsMap() {
		return
	}
	t := &r.plan.Target.TLS
	ca, cert, key := m.Get("ca_file"), m.Get("cert_file"), m.Get("key_file")
	if name, ok := ca.NonEmpty(); ok {
		t.CAFile = r.path(name)
		if _, err := certificates(t.CAFile); err != nil {
			ca.Reject(fmt.Sprintf("%s %v", t.CAFile, err), "write the path of a PEM file of CA certificates, relative to the plan")
		}
	}
	switch {
	case cert.Present() != key.Present():
		v.Reject("has one of cert_file and key_file", "write both, or neither")
	case cert.Present():
		c, ok := cert.NonEmpty()
		k, also := key.NonEmpty()
		if ok && also {
			t.CertFile, t.KeyFile = r.path(c), r.path(k)
			if _, err := clientCertificate(t.CertFile, t.KeyFile, time.Now()); err != nil {
				cert.Reject(fmt.Sprintf("%s %v", t.CertFile, err), "write the paths of a valid PEM client certificate and of its key, relative to the plan")
			}
		}
	}
	t.ServerName, _ = m.Get("server_name").Text()
	readBool(m.Get("insecure_skip_verify"), &t.InsecureSkipVerify)
	if u, err := url.Parse(r.plan.Target.URL); err == nil && u.Scheme == "http" {
		v.Reject("has no meaning for an address that begins with http://", "remove it, or write https://")
	}
}

func readBool(v strictyaml.Value, into *bool) {
	text, ok := v.Scalar()
	switch {
	case !ok:
	case text == "true" || text == "false":
		*into = text == "true"
	default:
		v.Reject("is neither true nor false", "write true or false")
	}
}

// NoProxy is the word for "no proxy, whatever the environment says".
const NoProxy = "none"

// ProxyFunc is for http.Transport.Proxy: the plan's own proxy, or those of the environment. A target on
// loopback is always spoken to directly.
func (t Target) ProxyFunc() func(*http.Request) (*url.URL, error) {
	switch t.Proxy {
	case "":
		return http.ProxyFromEnvironment
	case NoProxy:
		return nil
	}
	proxy, err := url.Parse(t.Proxy)
	return func(r *http.Request) (*url.URL, error) {
		host := r.URL.Hostname()
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			return nil, nil
		}
		return proxy, err
	}
}

func readProxy(v strictyaml.Value) string {
	text, ok := v.NonEmpty()
	if !ok || text == NoProxy {
		return text
	}
	if _, ok := readURL(v, text, "http://proxy.example.com:3128, or "+NoProxy); !ok {
		return ""
	}
	return text
}

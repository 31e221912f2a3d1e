package plan

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTLSAndProxyFaults(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.pem")
	if err := os.WriteFile(garbage, []byte("-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	target := func(more string) string {
		return "target: {url: 'https://h', api: openai-chat, model: m, " + more + "}"
	}
	for _, c := range []struct{ line, want string }{
		{target("tls: {ca_file: none.pem}"), "target.tls.ca_file: none.pem can't be read: no such file or directory (fix: write the path of a PEM file"},
		{target("tls: {ca_file: " + garbage + "}"), "holds a PRIVATE KEY, no certificate"},
		{target("tls: {ca_file: " + dir + "}"), "can't be read: is a directory"},
		{target("tls: {cert_file: a.pem}"), "target.tls: has one of cert_file and key_file"},
		{target("tls: {cert_file: a.pem, key_file: b.pem}"), "target.tls.cert_file: a.pem can't be used: a.pem can't be read"},
		{target("tls: {cert_file: " + garbage + ", key_file: b.pem}"), "b.pem can't be read"},
		{target("tls: {insecure_skip_verify: yes}"), "target.tls.insecure_skip_verify: is neither true nor false"},
		{target("tls: {verify: false}"), "target.tls.verify: unknown key"},
		{target("proxy: 'http://user:hunter2@p:3128'"), "target.proxy: holds credentials"},
		{target("proxy: p"), "target.proxy: is not a web address"},
		{target("api_key: {file: none.key}"), "target.api_key.file: can't be read: no such file or directory"},
		{"target: {url: 'http://h', api: openai-chat, model: m, tls: {server_name: h}}", "target.tls: has no meaning for an address that begins with http://"},
	} {
		_, err := Parse("plan.yaml", file(c.line))
		if err == nil {
			t.Errorf("%s is taken", c.line)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "plan.yaml:") || !strings.Contains(text, c.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%s:\n got %v\nwant %s", c.line, err, c.want)
		}
	}
}

func TestProxy(t *testing.T) {
	to := func(proxy, url string) string {
		f := Target{Proxy: proxy}.ProxyFunc()
		if f == nil {
			return "direct"
		}
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, err := f(r)
		if err != nil {
			t.Fatal(err)
		}
		if u == nil {
			return "direct"
		}
		return u.Host
	}
	for _, c := range []struct{ proxy, url, want string }{
		{"http://p:3128", "http://model.test:8000/", "p:3128"},
		{"http://p:3128", "https://model.test/", "p:3128"},
		{"http://p:3128", "http://127.0.0.7:8000/", "direct"},
		{"http://p:3128", "http://[::1]:8000/", "direct"},
		{"http://p:3128", "http://localhost:8000/", "direct"},
		{NoProxy, "http://model.test/", "direct"},
		{"", "http://127.0.0.1:8000/", "direct"},
	} {
		if got := to(c.proxy, c.url); got != c.want {
			t.Errorf("proxy %q to %s: %s, want %s", c.proxy, c.url, got, c.want)
		}
	}
}

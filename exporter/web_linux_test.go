//go:build cgo

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// write writes a file of the test and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate is a new one for 127.0.0.1, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// TLS and passwords come from the file of the web configuration, and guard every page.
func TestTLSAndPassword(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t)
	write(t, dir, "cert.pem", cert)
	write(t, dir, "key.pem", key)
	// The hash of "correct horse".
	config := write(t, dir, "web.yml", `tls_server_config:
  cert_file: cert.pem
  key_file: key.pem
basic_auth_users:
  scraper: $2a$04$cUlXdKcDDMP.4UmTPmEyOuEJW1bM1fN3frOu9e4wSJQ3LKfEFopEW
`)
	url, _, _ := started(t, "--web.config.file="+config)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(cert)) {
		t.Fatal("no certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	secure := strings.Replace(url, "http://", "https://", 1)
	for _, c := range []struct {
		path, password string
		want           int
	}{
		{"/metrics", "correct horse", http.StatusOK},
		{"/metrics", "wrong", http.StatusUnauthorized},
		{"/", "", http.StatusUnauthorized},
		{"/-/healthy", "", http.StatusUnauthorized},
	} {
		req, err := http.NewRequest(http.MethodGet, secure+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.password != "" {
			req.SetBasicAuth("scraper", c.password)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s with password %q: status %d, want %d", c.path, c.password, resp.StatusCode, c.want)
		}
	}
	if code, _ := page(t, url+"/metrics"); code != http.StatusBadRequest {
		t.Errorf("without TLS: status %d", code)
	}
}

// systemd holds the port and hands it over: the exporter opens none of its own.
func TestSystemdSocket(t *testing.T) {
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := &output{}
	// The shell becomes the exporter, so that the number of the process is the one that is meant.
	cmd := exec.Command("sh", "-c", `export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" --web.systemd-socket`, binary)
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{file}, io.Discard, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	client := &http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(fmt.Sprintf("http://%s/metrics", l.Addr()))
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d\n%s", resp.StatusCode, log)
	}
	client.CloseIdleConnections()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}

// A scrape that says how long it has gets its page in that time, without the collector that hangs.
func TestHangingProcInScrapeTime(t *testing.T) {
	proc := t.TempDir()
	if err := os.CopyFS(proc, os.DirFS("host/testdata/linux-6.18/proc")); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(proc, "diskstats")
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("no FIFO here: %v", err)
	}
	p := withLibrary(t, "", filepath.Join(t.TempDir(), "libnvidia-ml.so.1"), "--path.procfs="+proc)
	req, err := http.NewRequest(http.MethodGet, p.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "1")
	begin := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if took := time.Since(begin); took < 700*time.Millisecond || took > 3*time.Second {
		t.Errorf("the page took %v, want 0.8 s", took)
	}
	for _, line := range []string{`exporter_collector_success{collector="disk"} 0`, `exporter_collector_success{collector="cpu"} 1`, upHost} {
		if !strings.Contains(string(body), "\n"+line) {
			t.Errorf("the page lacks %q", line)
		}
	}
	if status := p.stop(); status != exitOK {
		t.Errorf("status %d\n%s", status, p.log)
	}
}

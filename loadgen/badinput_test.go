package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// expired writes a certificate that ended an hour ago, with its key, into a directory.
func expired(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"client.pem": {Type: "CERTIFICATE", Bytes: cert}, "client.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Bad input ends the command with status 2 and a message that names file, line, key and what to do,
// before a request is sent or a directory made.
func TestBadInputStartsNothing(t *testing.T) {
	replace := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	prompts := "prompts: {synthetic: {input_tokens: 32}}"
	for name, c := range map[string]struct {
		plan  func(string) string
		files map[string]string
		flags []string
		want  []string
	}{
		"a prompt file with a broken line 3": {
			plan:  replace(prompts, "prompts: {file: p.jsonl}"),
			files: map[string]string{"p.jsonl": `{"prompt": "a"}` + "\n" + `{"prompt": "b"}` + "\n" + `{"prompt": ` + "\n"},
			want:  []string{"plan.yaml:4:", "fixed.prompts.file", "p.jsonl:3", "(fix: "},
		},
		"a trace out of order": {
			plan: func(p string) string { return p + "trace: {file: t.jsonl, format: mooncake}\n" },
			files: map[string]string{"t.jsonl": `{"timestamp": 0, "input_length": 50, "output_length": 5}` + "\n" +
				`{"timestamp": 9000, "input_length": 50, "output_length": 5}` + "\n" + `{"timestamp": 5000, "input_length": 50, "output_length": 5}` + "\n"},
			want: []string{"plan.yaml:12:", "trace.file", "t.jsonl:3: comes 4s before the line above it", "(fix: sort the trace by its times)"},
		},
		"a class without weight": {
			plan: func(p string) string { return p + "classes: [{name: a, weight: 1}, {name: b}]\n" },
			want: []string{"plan.yaml:12:", "classes[1].weight: is missing", "(fix: write its share of the requests"},
		},
		"a drill whose command isn't there": {
			plan: func(p string) string {
				return p + "drills: [{name: d, concurrency: 1, duration: 1m, at: 5s, command: [/no/such/program]}]\n"
			},
			want: []string{"plan.yaml", "drills[0].command: /no/such/program can't be run", "(fix: write the path of a program"},
		},
		"a start time in the past": {
			plan:  replace("step: {requests: 20, min_duration: 100ms, max_duration: 1m}", "step: {duration: 1m}"),
			flags: []string{"--shard", "0/3", "--start-at", "2020-01-02T03:04:05Z"},
			want:  []string{"--start-at 2020-01-02T03:04:05Z is in the past by", "name a moment at which every shard will be up"},
		},
		"a shard 4/3": {
			flags: []string{"--shard", "4/3", "--start-at", "2100-01-02T03:04:05Z"},
			want:  []string{`--shard: "4/3": shards count from 0, so those of 3 are 0/3 to 2/3`},
		},
		"a client certificate that expired": {
			plan: replace("http://", "https://", "model: m}", "model: m, tls: {cert_file: client.pem, key_file: client.key}}"),
			want: []string{"plan.yaml:3:", "target.tls.cert_file", "client.pem expired on", "(fix: write the paths of a valid PEM client certificate"},
		},
		"a key file that's missing": {
			plan: replace("model: m}", "model: m, api_key: {file: none.key}}"),
			want: []string{"plan.yaml:3:", "target.api_key.file: can't be read: no such file or directory", "(fix: write the path of a file that holds the key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t)
			args, dir := files(t, e, c.plan)
			base := filepath.Dir(dir)
			expired(t, base)
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(base, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := launch(t, append(args, c.flags...)...)
			if status := p.exit(t); status != 2 {
				t.Errorf("exit status %d", status)
			}
			for _, want := range c.want {
				if !strings.Contains(p.said(), want) {
					t.Errorf("no %q in %s", want, p.said())
				}
			}
			if _, err := os.Stat(dir); err == nil || e.met.Load() || e.resets.Load() > 0 {
				t.Error("something was started")
			}
		})
	}
}

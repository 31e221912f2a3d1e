package main

import (
	"io"
	"net/http"
	"testing"
)

// BenchmarkPage is a whole page of this machine over HTTP, compressed as Prometheus asks for it.
func BenchmarkPage(b *testing.B) {
	url, _, _ := started(b)
	for b.Loop() {
		req, err := http.NewRequest(http.MethodGet, url+"/metrics", nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

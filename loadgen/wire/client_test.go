package wire

import (
	"strings"
	"testing"
)

func TestBodies(t *testing.T) {
	r := Request{Model: "m", Prompt: "say \"hi\"", OutputTokens: 16, ContextLength: 4096, Seed: 7}
	for api, want := range map[string]string{
		"openai-chat":        `{"model":"m","messages":[{"role":"user","content":"say \"hi\""}],"max_tokens":16,"temperature":0,"seed":7,"stream":true,"stream_options":{"include_usage":true}}`,
		"openai-completions": `{"model":"m","prompt":"say \"hi\"","max_tokens":16,"temperature":0,"seed":7,"stream":true,"stream_options":{"include_usage":true}}`,
		"ollama-chat":        `{"model":"m","messages":[{"role":"user","content":"say \"hi\""}],"stream":true,"options":{"num_predict":16,"num_ctx":4096,"temperature":0,"seed":7}}`,
		"ollama-generate":    `{"model":"m","prompt":"say \"hi\"","stream":true,"options":{"num_predict":16,"num_ctx":4096,"temperature":0,"seed":7}}`,
	} {
		d, err := ByName(api)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(d.Body(r)); got != want || d.Name() != api {
			t.Errorf("%s:\n%s\nwant\n%s", d.Name(), got, want)
		}
	}
	if _, err := ByName("openai"); err == nil || !strings.Contains(err.Error(), "openai-chat, openai-completions, ollama-chat, ollama-generate") {
		t.Errorf("error %v", err)
	}
}

func TestEndpoints(t *testing.T) {
	for _, tt := range []struct{ base, api, want string }{
		{"http://127.0.0.1:8000", "openai-chat", "http://127.0.0.1:8000/v1/chat/completions"},
		{"http://127.0.0.1:8000/", "openai-completions", "http://127.0.0.1:8000/v1/completions"},
		{"http://h/v1", "openai-chat", "http://h/v1/chat/completions"},
		{"http://h/v1/chat/completions", "openai-chat", "http://h/v1/chat/completions"},
		{"https://h/proxy/v1/", "openai-chat", "https://h/proxy/v1/chat/completions"},
		{"http://user:secret@h", "openai-chat", "http://h/v1/chat/completions"},
		{"http://h:11434/api", "ollama-chat", "http://h:11434/api/chat"},
		{"http://h:11434", "ollama-generate", "http://h:11434/api/generate"},
	} {
		if got := newTestClient(t, tt.api, Options{BaseURL: tt.base}).URL(); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.base, tt.api, got, tt.want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{BaseURL: "127.0.0.1:8000", API: "openai-chat"},
		{BaseURL: "ftp://h", API: "openai-chat"},
		{BaseURL: "http://", API: "openai-chat"},
		{BaseURL: "http://h?x=1", API: "openai-chat"},
		{BaseURL: "http://user:secret@h:bad", API: "openai-chat"},
		{BaseURL: "http://h", API: "grpc"},
		{BaseURL: "http://h", API: "openai-chat", APIKey: "secret\n"},
		{BaseURL: "http://h", API: "openai-chat", Headers: map[string]string{"a b": "c"}},
		{BaseURL: "http://h", API: "openai-chat", Headers: map[string]string{"a": "b\r\nc: d"}},
	} {
		if _, err := NewClient(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}

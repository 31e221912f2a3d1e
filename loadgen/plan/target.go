package plan

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"firstbreach/internal/strictyaml"
)

// APIs lists the dialects that a target may speak.
func APIs() []string { return []string{OpenAIChat, OpenAICompletions, OllamaChat, OllamaGenerate} }

func (r *reader) target(v strictyaml.Value) {
	if !v.Require("write target: {url: http://127.0.0.1:11434, api: ollama-chat, model: gemma3:270m}") {
		return
	}
	m := v.Map("url", "api", "model", "metrics", "host_metrics", "api_key", "headers", "tls", "proxy")
	if !v.IsMap() {
		return
	}
	t := &r.plan.Target
	if u := m.Get("url"); u.Require("write where the target listens, such as http://127.0.0.1:11434") {
		t.URL = readBaseURL(u)
	}
	if a := m.Get("api"); a.Require("write one of " + strings.Join(APIs(), ", ")) {
		t.API, _ = a.OneOf(APIs()...)
	}
	if n := m.Get("model"); n.Require("write the model's name as the target knows it") {
		t.Model, _ = n.NonEmpty()
	}
	t.Metrics = readOptionalURL(m.Get("metrics"))
	t.HostMetrics = readOptionalURL(m.Get("host_metrics"))
	t.APIKey = r.secret(m.Get("api_key"))
	t.Headers = readHeaders(m.Get("headers"))
	r.tls(m.Get("tls"))
	t.Proxy = readProxy(m.Get("proxy"))
}

// readURL reads a web address. Credentials in it are refused: the address ends up in the run
// directory and in reports. For the same reason no message here repeats what was written.
func readURL(v strictyaml.Value, text, example string) (*url.URL, bool) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		v.Reject("is not a web address", "write the whole address with http:// or https://, such as "+example)
	case u.User != nil:
		v.Reject("holds credentials", "take them out of the address and write api_key: {env: NAME} or {file: PATH}")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		v.Reject("has a fragment (#…), which is never sent", "remove it")
	default:
		return u, true
	}
	return nil, false
}

// apiPaths are the paths that a dialect appends to the target's address.
var apiPaths = regexp.MustCompile(`/(?:v1/(?:chat/)?completions|api/(?:chat|generate))/?$`)

// readBaseURL reads the address to which the dialect's own path is appended.
func readBaseURL(v strictyaml.Value) string {
	text, ok := v.NonEmpty()
	if !ok {
		return ""
	}
	u, ok := readURL(v, text, "http://127.0.0.1:11434")
	switch {
	case !ok:
		return ""
	case u.RawQuery != "" || u.ForceQuery:
		v.Reject("has a query (?…)", "write the address without it; a key belongs in api_key")
		return ""
	case apiPaths.MatchString(u.Path):
		v.Reject("holds the API's own path, which api: stands for", "write "+apiPaths.ReplaceAllString(text, ""))
		return ""
	}
	return strings.TrimRight(text, "/")
}

// readOptionalURL reads the address of a metrics page; "" is none.
func readOptionalURL(v strictyaml.Value) string {
	text, ok := v.Text()
	if !ok || strings.TrimSpace(text) == "" {
		return ""
	}
	text = strings.TrimSpace(text)
	if _, ok := readURL(v, text, "http://127.0.0.1:8000/metrics"); !ok {
		return ""
	}
	return text
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// readHeaders reads further request headers. Those that carry a secret are refused, because all of
// a plan is kept with the run; those that the client sets itself would break its requests.
func readHeaders(v strictyaml.Value) map[string]string {
	headers := map[string]string{}
	for _, e := range v.Entries() {
		name := http.CanonicalHeaderKey(e.Name)
		switch name {
		case "Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token":
			e.Value.Reject("would put a secret into the plan, which is kept with every run", "remove it and write api_key: {env: NAME} or {file: PATH}")
			continue
		case "Host", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Accept", "Accept-Encoding", "Te", "Trailer", "Upgrade":
			e.Value.Reject("is set by the client itself", "remove it")
			continue
		}
		if !headerName.MatchString(e.Name) {
			e.Value.Reject("is not a header name", "use letters, digits and -")
			continue
		}
		if _, twice := headers[name]; twice {
			e.Value.Reject("is given twice, in different case", "keep one of the two")
			continue
		}
		text, ok := e.Value.Text()
		if ok && strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			e.Value.Reject("has a control character in it", "write the value on one line")
			continue
		}
		if ok {
			headers[name] = text
		}
	}
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// restore reads the command or the request that puts the target back.
func (r *reader) restore(v strictyaml.Value) {
	r.doing(v.Map("command", "request", "timeout"), &r.plan.Restore)
}

// readCommand reads a command as a list. A single line would need a shell, and a shell's quoting is
// a trap in a command that runs unattended.
func readCommand(v strictyaml.Value) []string {
	if v.IsScalar() {
		v.Reject("must be a list", "write the program and its arguments one by one: [systemctl, restart, ollama]")
		return nil
	}
	var command []string
	for _, item := range v.List() {
		text, ok := item.Text()
		if ok && text == "" && len(command) == 0 {
			item.Reject("is empty", "write the program's name")
		}
		if ok {
			command = append(command, text)
		}
	}
	if v.IsList() && len(command) == 0 {
		v.Reject("is empty", "write the program and its arguments, or remove the key")
	}
	return command
}

func readRequest(v strictyaml.Value) *Request {
	m := v.Map("method", "url", "body")
	if !v.IsMap() {
		return nil
	}
	q := &Request{Method: http.MethodPost}
	if method := m.Get("method"); method.Present() {
		q.Method, _ = method.OneOf(http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet)
	}
	if u := m.Get("url"); u.Require("write the address to call") {
		if text, ok := u.NonEmpty(); ok {
			if _, ok := readURL(u, text, "http://127.0.0.1:8000/reset"); ok {
				q.URL = text
			}
		}
	}
	q.Body, _ = m.Get("body").Text()
	return q
}

// CheckEnvironment refuses to load a production target unless allowProduction, the value of the
// command's flag, says that it is meant.
func (p *Plan) CheckEnvironment(allowProduction bool) error {
	if p.Environment != Production || allowProduction {
		return nil
	}
	return &strictyaml.Error{Problems: []strictyaml.Problem{{
		File: p.Path, Key: "environment",
		Message: fmt.Sprintf("production: this plan drives %s up to %d requests at once, on a target that serves users", p.Target.URL, p.highest()),
		Fix:     "pass --allow-production if that is meant, or test a copy with environment: isolated",
	}}}
}

// highest is the greatest number of requests that the plan may have in flight.
func (p *Plan) highest() int {
	most := max(p.Baseline.Concurrency, p.Recovery.Concurrency)
	if len(p.Ramp.Rate) > 0 {
		most = max(most, p.Ramp.MaxInFlight)
	}
	for _, s := range p.After() {
		most = max(most, s.Concurrency, p.Held(s).MaxInFlight)
	}
	for _, c := range p.Ramp.Concurrency {
		most = max(most, c)
	}
	return most
}

package serve

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	"github.com/robfig/cron/v3"

	"firstbreach/analyze/window"
	"firstbreach/internal/promapi"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

// APIVersion is the only apiVersion of the configuration that this release reads.
const APIVersion = "firstbreach/v1"

// DefaultKeep is how long a report is kept when the file doesn't say.
const DefaultKeep = 90 * 24 * time.Hour

// Config is the configuration file (docs/serve.md).
type Config struct {
	Prometheus  api.Client
	SLO         []*slo.File
	Reports     string // folder
	ExternalURL string // of this server, for links; "" leaves them out
	Schedules   []Schedule
	Folders     []string // that reports are copied to
	Webhooks    []Webhook
	Grafana     *Grafana
}

// Schedule says when a report is made, and of what.
type Schedule struct {
	Name   string
	Cron   string
	Window time.Duration // how far back a report goes from its due time
	Jitter time.Duration // it is made up to so much later, always the same for one name
	Keep   time.Duration

	times *cron.SpecSchedule
}

// Webhook is an address that every report is announced to.
type Webhook struct {
	URL       string
	TokenFile string // bearer token; "" for none
}

// Grafana is where breaches become annotations.
type Grafana struct {
	URL       string
	TokenFile string
}

// Load reads a configuration and the SLO files that it names. The error is a *strictyaml.Error that
// lists every fault. now is needed to tell whether a schedule ever fires.
func Load(path string, now time.Time) (*Config, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, strictyaml.Errorf(path, "name a configuration file, see docs/serve.md", "can't be read: %v", err)
	}
	doc, err := strictyaml.Parse(path, src)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	at := func(v strictyaml.Value) string { return beside(path, v) }
	m := doc.Root().Map("apiVersion", "prometheus", "http_config_file", "slo", "reports", "external_url", "schedules", "deliver")
	if v := m.Get("apiVersion"); v.Require("write apiVersion: " + APIVersion) {
		_, _ = v.OneOf(APIVersion)
	}
	if v := m.Get("prometheus"); v.Require("write the URL of the Prometheus that scrapes the services, such as http://127.0.0.1:9090") {
		url, file := address(v), readable(m.Get("http_config_file"), at, "name a file in the form of Prometheus' HTTP client configuration")
		if url != "" {
			if c.Prometheus, err = promapi.New(url, file); err != nil {
				m.Get("http_config_file").Reject("can't be used", err.Error())
			}
		}
	}
	if v := m.Get("external_url"); v.Present() {
		c.ExternalURL = strings.TrimRight(address(v), "/")
	}
	if v := m.Get("reports"); v.Require("write the folder that reports are kept in") {
		if c.Reports = at(v); c.Reports != "" {
			if err := shelf(c.Reports).check(); err != nil {
				v.Reject(fmt.Sprintf("reports can't be written to %s: %v", c.Reports, err), "make it writable for this user, or name another folder")
			}
		}
	}
	var files []string
	if v := m.Get("slo"); v.Require("write a list of SLO files, such as [alerts/slo.yaml]; * stands for any text") {
		for _, e := range v.List() {
			for _, name := range matching(path, e) {
				if name = filepath.Clean(name); !slices.Contains(files, name) { // patterns may overlap
					files = append(files, name)
				}
			}
		}
		if len(v.List()) == 0 && v.IsList() {
			v.Reject("is empty", "write at least one SLO file")
		}
	}
	if v := m.Get("schedules"); v.Require("write a list, such as [{name: daily, cron: '0 6 * * *', window: 24h}]") {
		for _, e := range v.List() {
			s := schedule(e, now)
			if slices.ContainsFunc(c.Schedules, func(o Schedule) bool { return o.Name == s.Name }) {
				e.Reject("a second schedule named "+s.Name, "give it another name")
			}
			c.Schedules = append(c.Schedules, s)
		}
		if len(c.Schedules) == 0 && v.IsList() {
			v.Reject("is empty", "write at least one schedule")
		}
	}
	c.deliveries(m.Get("deliver"), at)
	errFile := doc.Err()
	var errSLO error
	if len(files) > 0 {
		c.SLO, errSLO = slo.LoadAll(files)
	}
	for _, f := range c.SLO {
		errSLO = strictyaml.Join(errSLO, window.Check(f))
	}
	if err := strictyaml.Join(errFile, errSLO); err != nil {
		return nil, err
	}
	return c, nil
}

// beside is a path, which counts from the configuration's folder unless it is absolute.
func beside(file string, v strictyaml.Value) string {
	text, ok := v.NonEmpty()
	if !ok || filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(filepath.Dir(file), text)
}

func matching(file string, v strictyaml.Value) []string {
	pattern := beside(file, v)
	if pattern == "" {
		return nil
	}
	found, err := filepath.Glob(pattern)
	switch {
	case err != nil:
		v.Reject(fmt.Sprintf("%q is no pattern", pattern), "write a path in which * stands for any text")
	case len(found) == 0:
		v.Reject(fmt.Sprintf("no file is named %s", pattern), "correct the path; it counts from the folder of this file")
	}
	return found
}

func address(v strictyaml.Value) string {
	text, ok := v.NonEmpty()
	if !ok {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		v.Reject(fmt.Sprintf("%q is not an http URL", text), "write one such as http://127.0.0.1:9090")
	}
	return text
}

func schedule(v strictyaml.Value, now time.Time) Schedule {
	s := Schedule{Keep: DefaultKeep}
	m := v.Map("name", "cron", "timezone", "window", "jitter", "keep")
	if n := m.Get("name"); n.Require("write a short name, such as daily") {
		s.Name, _ = n.NonEmpty()
		if strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			n.Reject(fmt.Sprintf("%q can't be part of a file name", s.Name), "use a-z, 0-9, - and _")
		}
	}
	zone := time.UTC
	if z := m.Get("timezone"); z.Present() {
		name, _ := z.NonEmpty()
		loc, err := time.LoadLocation(name)
		if err != nil || name == "Local" {
			z.Reject(fmt.Sprintf("%q is no time zone known here", name), "write a name of the IANA database, such as Europe/Berlin")
		} else {
			zone = loc
		}
	}
	if w := m.Get("window"); w.Require("write what stretch a report covers, such as 24h") {
		if s.Window, _ = w.PositiveDuration(); s.Window > 0 && s.Window < 10*time.Minute {
			w.Reject("is too short to tell anything", "write at least 10m")
		}
	}
	if j := m.Get("jitter"); j.Present() {
		s.Jitter, _ = j.Duration()
	}
	if k := m.Get("keep"); k.Present() {
		s.Keep, _ = k.PositiveDuration()
	}
	if e := m.Get("cron"); e.Require("write minute, hour, day of month, month and day of week, such as '0 6 * * *'") {
		s.Cron, _ = e.NonEmpty()
		times, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(s.Cron)
		spec, ok := times.(*cron.SpecSchedule)
		switch {
		case err != nil || !ok || strings.Contains(s.Cron, "TZ="):
			e.Reject(fmt.Sprintf("%q is not a cron specification", s.Cron), "write five fields: minute, hour, day of month, month, day of week, such as '0 6 * * 1'; the zone has a key of its own, timezone")
		default:
			spec.Location = zone
			if spec.Next(now).IsZero() {
				e.Reject(fmt.Sprintf("%q never fires", s.Cron), "correct the day of month or the month: that day doesn't exist")
			}
			s.times = spec
		}
	}
	return s
}

func (c *Config) deliveries(v strictyaml.Value, path func(strictyaml.Value) string) {
	m := v.Map("folders", "webhooks", "grafana")
	for _, f := range m.Get("folders").List() {
		c.Folders = append(c.Folders, path(f))
	}
	for _, w := range m.Get("webhooks").List() {
		h := w.Map("url", "token_file")
		hook := Webhook{}
		if u := h.Get("url"); u.Require("write the address that reports are posted to") {
			hook.URL = address(u)
		}
		hook.TokenFile = readable(h.Get("token_file"), path, tokenFix)
		c.Webhooks = append(c.Webhooks, hook)
	}
	if g := m.Get("grafana"); g.Present() {
		h := g.Map("url", "token_file")
		c.Grafana = &Grafana{TokenFile: readable(h.Get("token_file"), path, tokenFix)}
		if u := h.Get("url"); u.Require("write the address of Grafana") {
			c.Grafana.URL = strings.TrimRight(address(u), "/")
		}
	}
}

const tokenFix = "name a file that holds the token and nothing else"

// readable is a path of a file that can be read now; "" where there is none.
func readable(v strictyaml.Value, path func(strictyaml.Value) string, fix string) string {
	if !v.Present() {
		return ""
	}
	name := path(v)
	if name == "" {
		return ""
	}
	if _, err := os.ReadFile(name); err != nil {
		v.Reject(fmt.Sprintf("can't be read: %v", err), fix)
	}
	return name
}

// has reports whether there is a schedule of a name.
func (c *Config) has(schedule string) bool {
	return slices.ContainsFunc(c.Schedules, func(s Schedule) bool { return s.Name == schedule })
}

// Words says what a configuration means, for a person to check.
func (c *Config) Words(now time.Time) []string {
	var out []string
	for _, f := range c.SLO {
		out = append(out, fmt.Sprintf("service %s, %s: %d objectives", f.Service, f.Path, len(f.Objectives)))
	}
	for _, s := range c.Schedules {
		next := s.times.Next(now)
		out = append(out, fmt.Sprintf("schedule %s: of the last %v; next due %s, made %v later; kept for %v", s.Name, s.Window, next.Format(time.RFC3339), s.delay(), s.Keep))
	}
	return out
}

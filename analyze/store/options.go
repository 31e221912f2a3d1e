package store

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
)

// Defaults of Options.
const (
	DefaultListenAddress  = "127.0.0.1:0"
	DefaultListenFlag     = "--web.listen-address"
	DefaultScrapeInterval = time.Second
)

// minScrapeInterval keeps a slip of a unit ("1us") from turning the store into a load generator.
const minScrapeInterval = 10 * time.Millisecond

// Options say what a Store scrapes, where it keeps the samples and where it answers.
type Options struct {
	// Dir holds the data, in the layout of a Prometheus --storage.tsdb.path. It is made if it is
	// missing, unless ReadOnly is set.
	Dir string
	// ListenAddress is the host:port of the HTTP API; DefaultListenAddress (any free port) if "".
	ListenAddress string
	// ListenFlag is the command-line flag that sets ListenAddress, for error messages;
	// DefaultListenFlag if "".
	ListenFlag string
	// ScrapeInterval, which is also the scrape timeout and the rule evaluation interval, in whole
	// milliseconds; DefaultScrapeInterval if 0.
	ScrapeInterval time.Duration
	// Retention deletes blocks of samples older than this; 0 keeps everything, as a run
	// directory must.
	Retention time.Duration
	// Targets are scraped from Open to Close.
	Targets []Target
	// RuleFiles are Prometheus rule files, globs allowed. Their alerts are evaluated and shown by
	// the API; nobody is notified.
	RuleFiles []string
	// ReadOnly serves the data that is in Dir and adds nothing to it: no targets, no rules, no
	// retention, no compaction. The directory is locked, and must be writable, all the same:
	// Prometheus replays and closes its write-ahead log in place.
	ReadOnly bool

	// NoNativeHistograms leaves native histograms out, as a Prometheus does that doesn't know them.
	NoNativeHistograms bool
	// NoClassicHistograms leaves out the classic buckets of histograms that have native ones, as a
	// Prometheus does without always_scrape_classic_histograms.
	NoClassicHistograms bool

	// Logger gets what Prometheus has to say, which is much at level info; nil discards it.
	Logger *slog.Logger
}

// Target is one /metrics page to scrape.
type Target struct {
	Job string
	// URL of the page: http or https, no credentials.
	URL string
	// Labels are put on every series of the target, such as role="client". They win over labels
	// of the same name on the page, which then get the prefix "exported_".
	Labels map[string]string
}

// withDefaults returns o with its zero values filled in.
func (o Options) withDefaults() Options {
	if o.ListenAddress == "" {
		o.ListenAddress = DefaultListenAddress
	}
	if o.ListenFlag == "" {
		o.ListenFlag = DefaultListenFlag
	}
	if o.ScrapeInterval == 0 {
		o.ScrapeInterval = DefaultScrapeInterval
	}
	if o.Logger == nil {
		o.Logger = promslog.NewNopLogger()
	}
	return o
}

// validate returns everything that is wrong with o, at once.
func (o Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Dir == "" {
		bad("no data directory given")
	}
	if _, _, err := net.SplitHostPort(o.ListenAddress); err != nil {
		bad("listen address %q: want host:port, for example 127.0.0.1:9090 (%s)", o.ListenAddress, o.ListenFlag)
	}
	if o.ScrapeInterval < minScrapeInterval || o.ScrapeInterval%time.Millisecond != 0 {
		bad("scrape interval %s: want whole milliseconds, at least %s", o.ScrapeInterval, minScrapeInterval)
	}
	if o.Retention < 0 {
		bad("retention %s: want a positive duration, or 0 to keep everything", o.Retention)
	}
	if o.NoNativeHistograms && o.NoClassicHistograms {
		bad("native and classic histograms are both switched off: no latency would be left")
	}
	if o.ReadOnly && (len(o.Targets) > 0 || len(o.RuleFiles) > 0 || o.Retention != 0) {
		bad("a store opened read-only takes no targets, no rule files and no retention")
	}
	seen := map[string]string{}
	for _, t := range o.Targets {
		if err := t.validate(); err != nil {
			errs = append(errs, err)
			continue
		}
		if other, ok := seen[t.identity()]; ok {
			bad("targets %s and %s of job %q would write the same series: give one of them a label of its own", other, t.URL, t.Job)
		}
		seen[t.identity()] = t.URL
	}
	return errors.Join(errs...)
}

func (t Target) validate() error {
	if t.Job == "" {
		return fmt.Errorf("target %s: no job name", t.URL)
	}
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return fmt.Errorf("target of job %q: %w", t.Job, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("target %q of job %q: want a URL such as http://127.0.0.1:10510/metrics", t.URL, t.Job)
	case u.User != nil:
		return fmt.Errorf("target of job %q: the URL has credentials in it, which the HTTP API would show to everybody; serve the page without", t.Job)
	}
	for name := range t.Labels {
		if name == "job" || strings.HasPrefix(name, "__") {
			return fmt.Errorf("target %s of job %q: the label %q is set by Prometheus; choose another name", t.URL, t.Job, name)
		}
	}
	return nil
}

// identity is what tells the series of two targets apart: the path of the URL isn't part of it.
func (t Target) identity() string {
	all := map[string]string{"job": t.Job}
	if u, err := url.Parse(t.URL); err == nil {
		all["instance"] = u.Host
	}
	maps.Copy(all, t.Labels)
	return labels.FromMap(all).String()
}

package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/route"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/scrape"
	apiv1 "github.com/prometheus/prometheus/web/api/v1"
	"golang.org/x/net/netutil"
)

// The limits of the HTTP server are Prometheus's defaults.
const (
	maxConnections     = 512
	readTimeout        = 5 * time.Minute
	remoteReadSamples  = 50_000_000
	remoteReadQueries  = 10
	remoteReadFrameLen = 1 << 20
)

// loopbackOrigin matches the pages that may read the API from a browser. Without a bound any web
// page that somebody has open could read the data of a store on the same machine.
const loopbackOrigin = `^https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?$`

// startServing answers the HTTP API on the listener.
func (s *Store) startServing() error {
	handler, err := s.handler()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.server = &http.Server{
		Handler:           handler,
		ReadTimeout:       readTimeout,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	l := netutil.LimitListener(s.listener, maxConnections)
	s.running.Go(func() {
		if err := s.server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the Prometheus API stopped answering", "err", err)
		}
	})
	return nil
}

func (s *Store) handler() (http.Handler, error) {
	landing, err := s.landingPage()
	if err != nil {
		return nil, err
	}
	router := route.New()
	s.api().Register(router)
	ready := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Prometheus Server is Ready.") }

	mux := http.NewServeMux()
	mux.Handle("/", landing)
	mux.Handle("/api/v1/", http.StripPrefix("/api/v1", router))
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /-/healthy", ready)
	mux.HandleFunc("GET /-/ready", ready)
	return mux, nil
}

func (s *Store) landingPage() (http.Handler, error) {
	what := "Prometheus data in " + s.opts.Dir + ", being written by this process."
	if s.opts.ReadOnly {
		what = "Prometheus data of a finished run in " + s.opts.Dir + ", served as it is."
	}
	page, err := web.NewLandingPage(web.LandingConfig{
		Name: "firstbreach store",
		Description: what + " This address speaks the Prometheus HTTP API: add it to Grafana as a data source of type Prometheus, " +
			s.URL() + ". There is no expression browser here.",
		Version:   "Prometheus " + prometheusVersion,
		Profiling: "false",
		Links: []web.LandingLinks{
			{Address: "/api/v1/targets", Text: "Targets", Description: "What is scraped, and the last error of each."},
			{Address: "/api/v1/label/__name__/values", Text: "Metric names", Description: "Every name in the data."},
			{Address: "/api/v1/status/config", Text: "Configuration", Description: "The Prometheus configuration in use."},
			{Address: "/api/v1/status/tsdb", Text: "Data", Description: "Series and labels in memory."},
			{Address: "/metrics", Text: "Metrics", Description: "Of the store itself."},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("landing page: %w", err)
	}
	return page, nil
}

// api is Prometheus's API over this store. What writes is switched off: administration, remote
// write and OTLP.
func (s *Store) api() *apiv1.API {
	return apiv1.NewAPI(
		s.engine,
		s.db,
		nil, // appendable: only for the write endpoints
		s.db,
		func(context.Context) apiv1.ScrapePoolsRetriever { return s.scraper },
		func(context.Context) apiv1.TargetRetriever { return s.scraper },
		func(context.Context) apiv1.AlertmanagerRetriever { return noAlertmanagers{} },
		func() config.Config { return *s.cfg },
		s.flags(),
		apiv1.GlobalURLOptions{ListenAddress: s.listener.Addr().String(), Host: s.listener.Addr().String(), Scheme: "http"},
		func(h http.HandlerFunc) http.HandlerFunc { return h }, // the API is served once all is ready
		dbStatus{db: s.db, stats: s.stats},
		s.opts.Dir,
		false, // admin API
		false, // search API
		0,
		s.logger.With("component", "api"),
		func(context.Context) apiv1.RulesRetriever { return s.rules },
		remoteReadSamples, remoteReadQueries, remoteReadFrameLen,
		false, // agent
		regexp.MustCompile(loopbackOrigin),
		s.runtimeInfo,
		buildInfo(),
		noNotifications,
		noNotificationFeed,
		s.registry,
		s.registry,
		nil,        // statistics as Prometheus renders them
		false, nil, // remote write
		false, false, false, // OTLP
		lookbackDelta,
		false, // type and unit labels
		false, // metadata with remote write
		nil,   // error codes as Prometheus has them
		s.features,
		apiv1.OpenAPIOptions{ExternalURL: s.URL(), Version: prometheusVersion},
		s.parser,
		false, // query cost
		queryTimeout,
	)
}

// flags are the settings as the command line of a Prometheus would say them.
func (s *Store) flags() map[string]string {
	return map[string]string{
		"web.listen-address":                     s.listener.Addr().String(),
		"storage.tsdb.path":                      s.opts.Dir,
		"storage.tsdb.retention.time":            promDuration(s.opts.Retention),
		"query.lookback-delta":                   promDuration(lookbackDelta),
		"query.max-concurrency":                  fmt.Sprint(maxQueries),
		"query.max-samples":                      fmt.Sprint(maxSamples),
		"query.timeout":                          promDuration(queryTimeout),
		"web.max-connections":                    fmt.Sprint(maxConnections),
		"web.cors.origin":                        loopbackOrigin,
		"scrape.timestamp-tolerance":             scrape.ScrapeTimestampTolerance.String(),
		"storage.remote.read-max-bytes-in-frame": fmt.Sprint(remoteReadFrameLen),
		"storage.remote.read-sample-limit":       fmt.Sprint(remoteReadSamples),
		"storage.remote.read-concurrent-limit":   fmt.Sprint(remoteReadQueries),
		"web.enable-admin-api":                   "false",
		"web.enable-remote-write-receiver":       "false",
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"firstbreach/internal/release"
)

// page is the HTTP server of the metrics page. Its ports are taken before anything else is done,
// so that one in use is an error before the first request.
type page struct {
	listeners []net.Listener
	flags     web.FlagConfig
	logger    *slog.Logger
	server    *http.Server
	served    chan error
}

func listen(ctx context.Context, addresses []string, config string, logger *slog.Logger) (*page, error) {
	if err := web.Validate(config); err != nil {
		return nil, usageError{fmt.Errorf("--web.config.file %s: %w", config, err)}
	}
	p := &page{flags: web.FlagConfig{WebListenAddresses: &addresses, WebConfigFile: &config}, logger: logger}
	for _, a := range addresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a)
		if err != nil {
			p.close()
			return nil, fmt.Errorf("the metrics page: %w: choose another --web.listen-address", err)
		}
		p.listeners = append(p.listeners, l)
	}
	return p, nil
}

// serve serves the metrics in the background.
func (p *page) serve(metrics http.Handler, title string) error {
	landing, err := web.NewLandingPage(web.LandingConfig{
		Name: title, Description: "The load generator of firstbreach", Version: release.Version(), Profiling: "false",
		Links: []web.LandingLinks{{Address: "/metrics", Text: "Metrics"}},
	})
	if err != nil {
		return fmt.Errorf("landing page: %w", err)
	}
	ok := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") }
	mux := http.NewServeMux()
	mux.Handle("/", landing)
	mux.Handle("/metrics", metrics)
	mux.HandleFunc("/-/healthy", ok)
	mux.HandleFunc("/-/ready", ok)
	p.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
	}
	p.served = make(chan error, 1)
	go func() {
		err := web.ServeMultiple(p.listeners, p.server, &p.flags, quiet(p.logger))
		if !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("the metrics page is no longer served", "err", err)
		}
		p.served <- err
	}()
	return nil
}

// quiet keeps the toolkit's ordinary remarks for --log.level=debug: the run prints its address itself.
func quiet(l *slog.Logger) *slog.Logger {
	if l.Enabled(context.Background(), slog.LevelDebug) {
		return l
	}
	return slog.New(slog.DiscardHandler)
}

func (p *page) urls() string {
	scheme := "http"
	if *p.flags.WebConfigFile != "" {
		scheme = "http(s)"
	}
	var urls []string
	for _, l := range p.listeners {
		urls = append(urls, scheme+"://"+l.Addr().String()+"/metrics")
	}
	return strings.Join(urls, ", ")
}

// close ends the server, if there is one, or lets go of the ports.
func (p *page) close() {
	if p.server == nil {
		for _, l := range p.listeners {
			_ = l.Close()
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
	<-p.served
}

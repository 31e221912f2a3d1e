package sim

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// shutdownGrace is how long requests under way may go on after the context ended.
const shutdownGrace = 5 * time.Second

// Serve runs an engine behind the listener until ctx ends; requests under way then have five seconds
// to finish. It closes the listener, and returns nil after an end by ctx.
func Serve(ctx context.Context, cfg Config, l net.Listener, logger *slog.Logger) error {
	engine, err := New(cfg)
	if err != nil {
		_ = l.Close()
		return err
	}
	g := newGate(l, func() bool { return engine.available() == down })
	engine.onCrash = func() {
		logger.Warn("crash: every connection is dropped")
		g.drop()
	}
	s := &server{engine: engine, cfg: cfg}
	srv := &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { engine.Run(running) })
	defer wg.Wait()
	defer stop()
	logger.Info("simulated engine is serving", "address", l.Addr().String(), "model", cfg.Model, "slots", cfg.Slots)
	return serveUntil(ctx, srv, g)
}

// serveUntil serves until ctx ends, then shuts down.
func serveUntil(ctx context.Context, srv *http.Server, l net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// connKey is the context key of the request's connection.
type connKey struct{}

// server answers HTTP for one engine.
type server struct {
	engine *Engine
	cfg    Config
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", s.generate(openAI{chat: true}))
	mux.Handle("POST /v1/completions", s.generate(openAI{}))
	mux.Handle("POST /api/chat", s.generate(ollama{chat: true}))
	mux.Handle("POST /api/generate", s.generate(ollama{}))
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /api/tags", s.tags)
	mux.HandleFunc("GET /api/version", s.version)
	mux.HandleFunc("GET /version", s.version)
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /sim/fault", s.listFaults)
	mux.HandleFunc("POST /sim/fault", s.postFault)
	mux.HandleFunc("DELETE /sim/fault", s.clearFaults)
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.GathererFunc(s.gather), promhttp.HandlerOpts{}))
	return mux
}

func (s *server) gather() ([]*dto.MetricFamily, error) {
	var registry *prometheus.Registry
	s.engine.locked(func(c *core) { registry = c.gather() })
	return registry.Gather()
}

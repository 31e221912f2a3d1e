package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/exporter-toolkit/web"

	"firstbreach/analyze/serve"
	"firstbreach/analyze/standalone"
)

func addServe(app *kingpin.Application) (string, command) {
	cmd := app.Command("serve", "Make a report of production for each SLO file on a schedule (analyze window over the last period), keep them, show them on a page, and deliver them.")
	config := cmd.Flag("config", "Configuration file (docs/serve.md). SIGHUP and POST /-/reload read it again.").Required().PlaceHolder("FILE").String()
	check := cmd.Flag("check", "Check the configuration and its SLO files, say what it means, and end.").Bool()
	listen := cmd.Flag("web.listen-address", "Address of the page. Repeatable.").Default("127.0.0.1:10512").Strings()
	webConfig := cmd.Flag("web.config.file", "File that turns on TLS or authentication, as of the Prometheus exporter toolkit.").String()
	return cmd.FullCommand(), func(ctx context.Context, e env) (int, error) {
		load := func() (*serve.Config, error) { return serve.Load(*config, time.Now()) }
		if err := web.Validate(*webConfig); err != nil {
			return 0, &standalone.UsageError{Text: fmt.Sprintf("--web.config.file %s: %v", *webConfig, err)}
		}
		if *check {
			c, err := load()
			if err != nil {
				return 0, err
			}
			for _, line := range c.Words(time.Now()) {
				fmt.Fprintln(e.stdout, line)
			}
			return 0, nil
		}
		s, err := serve.New(serve.Options{Load: load, Logger: e.logger})
		if err != nil {
			return 0, err
		}
		handler, err := s.Handler()
		if err != nil {
			return 0, err
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(e.logger.Handler(), slog.LevelDebug)}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		served := make(chan error, 1)
		go func() {
			served <- web.ListenAndServe(server, &web.FlagConfig{WebListenAddresses: listen, WebConfigFile: webConfig}, e.logger)
			cancel() // without a page there is no point in going on
		}()
		fmt.Fprintf(e.stderr, "analyze serve: reports at %v\n", *listen)
		go reloadAtHangup(ctx, s, e.logger)
		s.Run(ctx)
		end, done := context.WithTimeout(context.Background(), 2*time.Second)
		defer done()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return 0, fmt.Errorf("the page can't be served: %w (fix: choose another --web.listen-address)", err)
		}
		return 0, nil
	}
}

func reloadAtHangup(ctx context.Context, s *serve.Server, logger *slog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			if err := s.Reload(); err != nil {
				logger.Error("the configuration can't be used; the old one stays", "err", err)
			}
		}
	}
}

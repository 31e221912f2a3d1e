package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/loadgen/sim"
)

// simCommand is `loadgen sim`.
type simCommand struct {
	name   string
	listen string
	config *sim.Config
}

func addSim(app *kingpin.Application) *simCommand {
	c := &simCommand{}
	cmd := app.Command("sim", "Serve the simulated engine: OpenAI and Ollama APIs and a metrics page.")
	c.name = cmd.FullCommand()
	cmd.Flag("web.listen-address", "Address to serve on.").Default("127.0.0.1:10513").StringVar(&c.listen)
	c.config = sim.Flags(cmd)
	return c
}

func (c *simCommand) do(ctx context.Context, logger *slog.Logger) error {
	if err := c.config.Validate(); err != nil {
		return usageError{err}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another --web.listen-address", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return sim.Serve(ctx, *c.config, l, logger)
}

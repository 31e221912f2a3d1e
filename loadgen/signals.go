package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// watchSignals turns signals into contexts: the first one ends the sending, the second ends the
// waiting as well, and a third kills the process as it would any other.
func watchSignals(ctx context.Context, stderr io.Writer) (first, second context.Context, stop func()) {
	first, one := context.WithCancelCause(ctx)
	second, two := context.WithCancel(ctx)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-ch:
			fmt.Fprintf(stderr, "\n%s: no more requests are sent, those in flight may end; once more to quit at once\n", s)
			one(errors.New(s.String()))
		case <-second.Done():
			return
		}
		select {
		case <-ch:
			signal.Stop(ch)
			two()
		case <-second.Done():
		}
	}()
	return first, second, func() { signal.Stop(ch); two(); one(nil) }
}

// closing is the context for the end of a run: the next signal ends it, be it the first or the
// second.
func closing(first, second context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(second)
	if first.Err() != nil {
		return ctx, cancel
	}
	unhook := context.AfterFunc(first, cancel)
	return ctx, func() { unhook(); cancel() }
}

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

// interrupts turn signals into contexts: the first one ends the sending, the second ends the
// waiting as well, and a third kills the process as it would any other.
type interrupts struct {
	first, second context.Context
	stop          func()
}

func watchSignals(ctx context.Context, stderr io.Writer) interrupts {
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
	return interrupts{first, second, func() { signal.Stop(ch); two(); one(nil) }}
}

// closing is the context for the end of a run: the next signal ends it, be it the first or the
// second.
func (i interrupts) closing() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(i.second)
	if i.first.Err() != nil {
		return ctx, cancel
	}
	unhook := context.AfterFunc(i.first, cancel)
	return ctx, func() { unhook(); cancel() }
}

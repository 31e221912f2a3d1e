package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// freePort listens on any free port of the loopback interface.
const freePort = "127.0.0.1:0"

// server is one HTTP server of the run.
type server struct {
	url  string
	http *http.Server
	done chan struct{}
}

// listen opens an address, any free port when it is "".
func listen(ctx context.Context, address, flag string) (net.Listener, error) {
	if address == "" {
		address = freePort
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &UsageError{fmt.Sprintf("%s: %v; name another address, or leave the flag out for a free port", flag, err)}
	}
	return l, nil
}

// free makes sure that an address can be listened on; who listens there opens it later.
func free(ctx context.Context, address, flag string) error {
	l, err := listen(ctx, address, flag)
	if err != nil {
		return err
	}
	return l.Close()
}

// serve serves a handler on a listener until stop.
func serve(l net.Listener, h http.Handler) *server {
	s := &server{url: "http://" + l.Addr().String(), done: make(chan struct{})}
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // its end is stop's doing
	}()
	return s
}

// stop ends the server at once: who scrapes it has stopped by then.
func (s *server) stop() error {
	err := s.http.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

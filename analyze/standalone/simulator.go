package standalone

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"firstbreach/loadgen/sim"
)

// simStart bounds how long the simulated engine may take to say where it listens, simStop how long
// to end.
const (
	simStart = 20 * time.Second
	simStop  = 10 * time.Second
)

// simulator is the simulated engine in a process of its own, so that it shares neither scheduler nor
// garbage collector with the client that measures it.
type simulator struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan error
}

// startSimulator starts the child and waits until it says where it listens.
func startSimulator(ctx context.Context, o Options, cfg sim.Config) (*simulator, error) {
	address := o.SimAddress
	if address == "" {
		address = freePort
	}
	cmd := o.Simulator(append(cfg.Args(), "--web.listen-address="+address))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the simulated engine: %w", err)
	}
	s := &simulator{cmd: cmd, stdin: stdin, ended: make(chan error, 1)}
	line := make(chan string, 1)
	go func() {
		first, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- strings.TrimSpace(first)
		s.ended <- cmd.Wait()
	}()
	timer := time.NewTimer(simStart)
	defer timer.Stop()
	select {
	case where := <-line:
		if where == "" {
			<-s.ended
			return nil, fmt.Errorf("the simulated engine did not start: %s", strings.TrimSpace(said.String()))
		}
		s.url = "http://" + where
		return s, nil
	case <-timer.C:
		return nil, errors.Join(fmt.Errorf("the simulated engine did not say within %s where it listens", simStart), s.stop())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), s.stop())
	}
}

// stop closes the child's standard input, which ends it, and kills it if it doesn't.
func (s *simulator) stop() error {
	_ = s.stdin.Close()
	select {
	case <-s.ended:
		return nil
	case <-time.After(simStop):
		return errors.Join(errors.New("the simulated engine did not end and was killed"), s.cmd.Process.Kill())
	}
}

// ServeSimulator is the child's side: it writes the address to out as one line, and serves until
// in is closed or ctx ends.
func ServeSimulator(ctx context.Context, cfg sim.Config, address string, in io.Reader, out io.Writer) error {
	l, err := listen(ctx, address, "--sim.listen-address")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return sim.Serve(ctx, cfg, l, discard())
}

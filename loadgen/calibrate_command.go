package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/internal/atomicfile"
	"firstbreach/internal/release"
	"firstbreach/loadgen/calibrate"
	"firstbreach/loadgen/record"
)

// calibrateCommand is `loadgen calibrate`, and the process it starts to read from.
type calibrateCommand struct {
	name, source    string
	streams         string
	rate            float64
	warmup, measure time.Duration
	wave, read      bool
	run             string
	from            calibrate.Source
}

func addCalibrate(app *kingpin.Application) *calibrateCommand {
	c := &calibrateCommand{}
	cmd := app.Command("calibrate", "Measure the client's own error: read streams that say when each chunk was sent.")
	c.name = cmd.FullCommand()
	cmd.Flag("streams", "Numbers of streams to measure at, one after the other.").Default("1,10,50,100,200,500,1000").StringVar(&c.streams)
	cmd.Flag("rate", "Chunks per second of each stream.").Default("50").Float64Var(&c.rate)
	cmd.Flag("warmup", "How long each number of streams runs before it is measured.").Default("2s").DurationVar(&c.warmup)
	cmd.Flag("measure", "How long each is measured.").Default("3s").DurationVar(&c.measure)
	cmd.Flag("wave", "Have all streams begin at once, on fresh connections, and measure that.").BoolVar(&c.wave)
	cmd.Flag("read-stamps", "Stamp arrivals when they are read, as where the kernel gives no stamps.").BoolVar(&c.read)
	cmd.Flag("run", "A run directory to store the table in, as "+record.Calibration+".").StringVar(&c.run)

	source := app.Command("stamped-streams", "The streams that calibrate reads.").Hidden()
	c.source = source.FullCommand()
	source.Flag("prefill", "Time to the first token.").Default("50ms").DurationVar(&c.from.Prefill)
	source.Flag("gap", "Time between tokens.").Default("20ms").DurationVar(&c.from.Gap)
	source.Flag("tokens", "Tokens of an answer.").Default("64").IntVar(&c.from.Tokens)
	return c
}

// serve is the child process: it prints its address and serves until it is told to stop, or whoever
// started it is gone.
func (c *calibrateCommand) serve(ctx context.Context, stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "http://"+l.Addr().String())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
	}()
	return c.from.Serve(ctx, l)
}

func (c *calibrateCommand) do(ctx context.Context, stdout, stderr io.Writer) error {
	levels, err := c.levels()
	if err != nil {
		return usageError{err}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	url, end, err := c.start(ctx, stderr)
	if err != nil {
		return err
	}
	defer end()
	var measured []calibrate.Level
	for _, n := range levels {
		fmt.Fprintf(stderr, "measuring %d streams\n", n)
		l, err := calibrate.Measure(ctx, calibrate.Load{URL: url, Source: c.from, Streams: n, Warmup: c.warmup, Measure: c.measure, Wave: c.wave, ReadStamps: c.read})
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		measured = append(measured, l)
	}
	if err := calibrate.WriteTable(stdout, measured); err != nil || c.run == "" {
		return err
	}
	return c.store(measured)
}

// levels checks the flags.
func (c *calibrateCommand) levels() ([]int, error) {
	var ns []int
	for _, text := range strings.Split(c.streams, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 4096 {
			return nil, fmt.Errorf("--streams=%s: %q is not a number of streams from 1 to 4096; write them as 50,200,500", c.streams, text)
		}
		ns = append(ns, n)
	}
	switch {
	case c.rate < 0.1 || c.rate > 1000:
		return nil, fmt.Errorf("--rate=%g: from 0.1 to 1000 chunks per second", c.rate)
	case c.measure < 100*time.Millisecond || c.warmup < 0:
		return nil, fmt.Errorf("--warmup=%s --measure=%s: at least 0 and 100ms", c.warmup, c.measure)
	}
	if c.run != "" {
		if _, err := os.Stat(filepath.Join(c.run, record.ManifestFile)); err != nil {
			return nil, fmt.Errorf("--run=%s: no run directory: %w", c.run, err)
		}
	}
	c.from = calibrate.Source{Prefill: 50 * time.Millisecond, Gap: time.Duration(float64(time.Second) / c.rate), Tokens: 64}
	return ns, nil
}

// start runs this program again as the source of the streams. end stops it and waits.
func (c *calibrateCommand) start(ctx context.Context, stderr io.Writer) (url string, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	child := exec.CommandContext(ctx, self, "stamped-streams", "--prefill="+c.from.Prefill.String(),
		"--gap="+c.from.Gap.String(), "--tokens="+strconv.Itoa(c.from.Tokens))
	child.Stderr = stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := child.Start(); err != nil {
		return "", nil, fmt.Errorf("start the source of the streams: %w", err)
	}
	end = func() {
		_ = stdin.Close()
		_ = child.Wait() // it has nothing left to say
	}
	if _, err := fmt.Fscanln(out, &url); err != nil {
		end()
		return "", nil, fmt.Errorf("the source of the streams did not start: %w", err)
	}
	return url, end, nil
}

// calibration is the file of a run directory.
type calibration struct {
	Schema          int               `json:"schema"`
	MeasuredAt      time.Time         `json:"measured_at"`
	Version         string            `json:"version"`
	ChunksPerSecond float64           `json:"chunks_per_second_per_stream"`
	Wave            bool              `json:"wave"`
	Levels          []calibrate.Level `json:"levels"`
}

func (c *calibrateCommand) store(levels []calibrate.Level) error {
	data, err := json.MarshalIndent(calibration{1, time.Now().UTC(), release.Version(), c.rate, c.wave, levels}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(c.run, record.Calibration), append(data, '\n'))
}

//go:build unix

// Command peers measures how far off the TTFT is that loadgen, GuideLLM and AIPerf tell of the same
// streams, one after the other on this machine, and what each takes for it:
//
//	go run ./loadgen/peers
//
// It installs GuideLLM and AIPerf from PyPI (4 GB), each into a virtual environment of its own, and needs
// python3 with venv. The streams come from a process of its own on 127.0.0.1: the first token 200 ms after
// the request, then 63 more, 20 ms apart.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/internal/figures"
	"firstbreach/loadgen/calibrate"
)

// prefill is the true TTFT of every stream.
const prefill = 200 * time.Millisecond

// settings are what all tools are given.
type settings struct {
	folder  string
	streams []int
	warmup  time.Duration // from the first request; those sent meanwhile don't count
	measure time.Duration
}

func main() {
	app := kingpin.New("peers", "Measure the error of TTFT in loadgen, GuideLLM and AIPerf on the same streams.")
	app.HelpFlag.Short('h')
	cache, _ := os.UserCacheDir() // an empty one makes the folder relative, which works as well
	var s settings
	compare := app.Command("compare", "Install the tools, measure all of them, print the table.").Default()
	compare.Flag("folder", "Where the tools and their results lie.").Default(filepath.Join(cache, "firstbreach-peers")).StringVar(&s.folder)
	compare.Flag("streams", "Numbers of streams.").Default("200", "1000").IntsVar(&s.streams)
	compare.Flag("warmup", "What is sent that long from the beginning doesn't count.").Default("4s").DurationVar(&s.warmup)
	compare.Flag("measure", "How long each tool is measured.").Default("12s").DurationVar(&s.measure)
	source := app.Command(roleSource, "The streams.").Hidden()
	ours := app.Command(roleOurs, "Read them with the whole of loadgen.").Hidden()
	load := calibrate.Load{Source: truth}
	ours.Flag("url", "Of the streams.").StringVar(&load.URL)
	ours.Flag("streams", "How many.").IntVar(&load.Streams)
	ours.Flag("warmup", "Not measured.").DurationVar(&load.Warmup)
	ours.Flag("measure", "Measured.").DurationVar(&load.Measure)
	result := ours.Flag("result", "File to write the error to.").String()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch kingpin.MustParse(app.Parse(os.Args[1:])) {
	case compare.FullCommand():
		err = s.compare(ctx)
	case source.FullCommand():
		err = serve(ctx)
	case ours.FullCommand():
		err = readOurs(ctx, load, *result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// The roles that this program has as a child of its own.
const (
	roleSource = "source"
	roleOurs   = "ours"
)

var truth = calibrate.Source{Prefill: prefill, Gap: 20 * time.Millisecond, Tokens: 64}

// serve serves the streams until its standard input ends, and then tells how late it was itself.
func serve(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var late []time.Duration
	from := truth
	from.FirstSent = func(ttft time.Duration) { late = append(late, (ttft - prefill).Abs()) }
	if err := from.Serve(ctx, l); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(quantiles(late))
}

// readOurs writes down the error of the whole TTFT as loadgen tells it, against when the request reached the
// source and when the source sent the token.
func readOurs(ctx context.Context, l calibrate.Load, result string) error {
	v, err := calibrate.Measure(ctx, l)
	if err != nil {
		return err
	}
	if v.Failed > 0 {
		return fmt.Errorf("%d of %d requests lost or doubled a chunk", v.Failed, v.Requests)
	}
	raw, err := json.Marshal(spread{int(v.FullTTFT.N), v.FullTTFT.P50, v.FullTTFT.P99})
	if err != nil {
		return err
	}
	return os.WriteFile(result, raw, 0o644)
}

// spread is how large an error is, in seconds.
type spread struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_s"`
	P99 float64 `json:"p99_s"`
}

func quantiles(errs []time.Duration) spread {
	if len(errs) == 0 {
		return spread{}
	}
	slices.Sort(errs)
	at := func(q float64) float64 { return errs[min(int(q*float64(len(errs))), len(errs)-1)].Seconds() }
	return spread{len(errs), at(0.5), at(0.99)}
}

// row is one line of the table.
type row struct {
	streams      int
	tool         string
	error, truth spread
	memory       uint64
	cpu          time.Duration
}

func (s settings) compare(ctx context.Context) error {
	if s.measure < time.Second || s.warmup < 0 {
		return fmt.Errorf("--warmup=%s --measure=%s: at least 0 and 1s", s.warmup, s.measure)
	}
	folder, err := filepath.Abs(s.folder)
	if err != nil {
		return err
	}
	s.folder = folder
	tools := []tool{loadgen{}, guideLLM{}, aiPerf{}}
	for _, t := range tools {
		if err := t.install(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", t.name(), err)
		}
	}
	var rows []row
	for _, n := range s.streams {
		for _, t := range tools {
			fmt.Fprintf(os.Stderr, "%s, %d streams\n", t.name(), n)
			r, err := s.measureOne(ctx, t, n)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err != nil {
				return fmt.Errorf("%s, %d streams: %w", t.name(), n, err)
			}
			rows = append(rows, r)
		}
	}
	return write(os.Stdout, rows)
}

// measureOne has one tool read the streams of a fresh source.
func (s settings) measureOne(ctx context.Context, t tool, n int) (row, error) {
	results, err := os.MkdirTemp(s.folder, "results-")
	if err != nil {
		return row{}, err
	}
	defer os.RemoveAll(results)
	src, err := startSource(ctx)
	if err != nil {
		return row{}, err
	}
	defer src.end()
	cmd := t.command(ctx, s, src.url, n, results)
	use, err := watch(cmd, filepath.Join(s.folder, t.name()+".log"))
	if err != nil {
		return row{}, err
	}
	r := row{streams: n, tool: t.name(), memory: use.memory, cpu: use.cpu}
	if r.error, err = t.read(s, results); err != nil {
		return row{}, err
	}
	if r.error.N == 0 {
		return row{}, errors.New("no request ended after the warm-up")
	}
	r.truth, err = src.end()
	return r, err
}

func write(w io.Writer, rows []row) error {
	var b strings.Builder
	b.WriteString("| streams | tool | requests | TTFT error P50 | P99 | the source's own P99 | memory | CPU |\n" + strings.Repeat("|---", 8) + "|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | %s | %d | %s | %s | %s | %s | %.1f s |\n", r.streams, r.tool, r.error.N,
			milliseconds(r.error.P50), milliseconds(r.error.P99), milliseconds(r.truth.P99), mebibytes(r.memory), r.cpu.Seconds())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func milliseconds(seconds float64) string { return figures.Write(seconds*1e3, 3) + " ms" }

func mebibytes(n uint64) string {
	if n == 0 {
		return "–" // no /proc to ask
	}
	return strconv.FormatUint(n>>20, 10) + " MiB"
}

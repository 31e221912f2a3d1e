package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// program is one exporter under measurement.
type program struct {
	name       string
	cmd        *exec.Cmd
	url        string
	cpu        float64 // seconds, of the whole process
	resident   float64 // bytes, the most that was seen
	series     int     // without those of the process itself
	bytes      int     // of them
	scrapeTime time.Duration
	scrapes    int
}

// compareCost scrapes both once a second; it reports whether ours uses at most what theirs does.
func compareCost(ctx context.Context, out io.Writer, ours, theirs string, span time.Duration) (bool, error) {
	// Only what gives the same data as ours.
	node := []string{"--collector.disable-defaults", "--collector.cpu", "--collector.meminfo", "--collector.vmstat", "--collector.stat",
		"--collector.diskstats", "--collector.loadavg", "--collector.pressure", "--collector.uname",
		"--collector.vmstat.fields=^(pgpgin|pgpgout|pswpin|pswpout)$"}
	a, err := start(ctx, "exporter", ours)
	if err != nil {
		return false, err
	}
	defer a.cmd.Process.Kill()
	b, err := start(ctx, "node_exporter", theirs, node...)
	if err != nil {
		return false, err
	}
	defer b.cmd.Process.Kill()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	next := []*program{a, b}
	for end := time.Now().Add(span); time.Now().Before(end) && ctx.Err() == nil; <-tick.C {
		for _, p := range next {
			if err := p.scrape(ctx); err != nil {
				return false, err
			}
		}
		slices.Reverse(next) // the first after the pause pays for it
	}
	for _, p := range []*program{a, b} {
		if err := p.use(); err != nil {
			return false, err
		}
		fmt.Fprintf(out, "%-14s %4d scrapes  CPU %6.2f s (%.3f %% of one)  scrape %.2f ms  resident %.1f MiB  %d series, %.1f bytes each\n", p.name, p.scrapes,
			p.cpu, 100*p.cpu/span.Seconds(), p.scrapeTime.Seconds()*1000/float64(p.scrapes), p.resident/(1<<20), p.series, p.perSeries())
	}
	return a.cpu <= b.cpu && a.perSeries() <= b.perSeries() && a.resident <= 40<<20, nil
}

func (p *program) perSeries() float64 { return float64(p.bytes) / float64(p.series) }

func start(ctx context.Context, name, path string, args ...string) (*program, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	p := &program{name: name, url: "http://" + address + "/metrics"}
	p.cmd = exec.CommandContext(ctx, path, append(args, "--web.listen-address="+address)...)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if _, err = fetch(ctx, p.url); err == nil {
			return p, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.cmd.Process.Kill()
	return nil, fmt.Errorf("%s: %w", path, err)
}

// self are the series that an exporter has of itself.
var self = regexp.MustCompile(`^(# (HELP|TYPE) )?(go_|process_|promhttp_)`)

func (p *program) scrape(ctx context.Context) error {
	begin := time.Now()
	page, err := fetch(ctx, p.url)
	if err != nil {
		return err
	}
	p.scrapeTime += time.Since(begin)
	p.scrapes++
	p.series, p.bytes = 0, 0
	for line := range bytes.Lines(page) {
		if self.Match(line) {
			continue
		}
		p.bytes += len(line)
		if line[0] != '#' {
			p.series++
		}
	}
	return p.use()
}

// use reads what the process has used so far.
func (p *program) use() error {
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system, resident = 14 - 3, 15 - 3, 24 - 3 // as proc(5) numbers them
	var n [3]float64
	for i, f := range []int{user, system, resident} {
		if n[i], err = strconv.ParseFloat(fields[f], 64); err != nil {
			return err
		}
	}
	const hertz = 100
	p.cpu = (n[0] + n[1]) / hertz
	p.resident = max(p.resident, n[2]*float64(os.Getpagesize()))
	return nil
}

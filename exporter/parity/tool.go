package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// report is one line of vmstat, or one device of one report of iostat: a value for each column.
type report struct {
	device string // "" for vmstat
	values map[string]float64
}

// read parses what a tool prints and calls each for every interval, as soon as it is there. The
// first one is of the time since the machine was started.
type read func(in io.Reader, each func([]report)) error

// follow runs a tool and calls each for every interval that it reports.
func follow(ctx context.Context, parse read, each func([]report), name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "S_COLORS=never")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: install procps and sysstat", err)
	}
	if err := parse(out, each); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return fmt.Errorf("%s: %w", name, err)
	}
	return cmd.Wait()
}

func readVMStat(in io.Reader, each func([]report)) error {
	var header []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "procs"):
		case fields[0] == "r":
			header = fields
		default:
			r, err := newReport(header, fields)
			if err != nil {
				return err
			}
			each([]report{r})
		}
	}
	return lines.Err()
}

// readIOStat takes the empty line after the devices for the end of a report.
func readIOStat(in io.Reader, each func([]report)) error {
	var header []string
	var devices []report
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) > 0 && fields[0] == "Device":
			header, devices = fields[1:], nil
		case len(fields) == 0 && header != nil:
			each(devices)
			header = nil
		case header != nil:
			r, err := newReport(header, fields[1:])
			if err != nil {
				return err
			}
			r.device = fields[0]
			devices = append(devices, r)
		}
	}
	return lines.Err()
}

func newReport(header, fields []string) (report, error) {
	r := report{values: map[string]float64{}}
	if len(header) != len(fields) {
		return r, fmt.Errorf("%d columns under a header of %d", len(fields), len(header))
	}
	for i, f := range fields {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return r, err
		}
		r.values[header[i]] = v
	}
	return r, nil
}

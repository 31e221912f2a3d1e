//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// usage is what a program and its children used.
type usage struct {
	memory uint64 // bytes, proportional set size, the largest seen; 0 where there is no /proc
	cpu    time.Duration
}

// watch runs a command to its end and looks at its memory meanwhile. What it prints goes to a log.
func watch(c *exec.Cmd, log string) (usage, error) {
	out, err := os.Create(log)
	if err != nil {
		return usage{}, err
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if err := c.Start(); err != nil {
		return usage{}, err
	}
	var used usage
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for look := time.NewTicker(250 * time.Millisecond); ; {
		select {
		case err := <-ended:
			look.Stop()
			if err != nil {
				return used, fmt.Errorf("%w; see %s", err, log)
			}
			used.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
			return used, nil
		case <-look.C:
			used.memory = max(used.memory, familyMemory(c.Process.Pid))
		}
	}
}

// familyMemory is the proportional set size of a process and all that descend from it: pages that
// several of them share count once.
func familyMemory(pid int) uint64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	procs, err := fs.AllProcs()
	if err != nil {
		return 0
	}
	children := map[int][]procfs.Proc{}
	for _, p := range procs {
		if stat, err := p.Stat(); err == nil { // one that ended meanwhile has none
			children[stat.PPID] = append(children[stat.PPID], p)
		}
	}
	self, err := fs.Proc(pid)
	if err != nil {
		return 0
	}
	var sum uint64
	for family := []procfs.Proc{self}; len(family) > 0; family = family[1:] {
		if m, err := family[0].ProcSMapsRollup(); err == nil {
			sum += m.Pss
		}
		family = append(family, children[family[0].PID]...)
	}
	return sum
}

// source is the process that serves the streams.
type source struct {
	url string
	end func() (spread, error) // stops it; how late it was itself
}

func startSource(ctx context.Context) (source, error) {
	c := exec.CommandContext(ctx, os.Args[0], roleSource)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		return source{}, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return source{}, err
	}
	if err := c.Start(); err != nil {
		return source{}, err
	}
	end := sync.OnceValues(func() (late spread, err error) {
		_ = stdin.Close() // which ends it
		rest, err := io.ReadAll(out)
		return late, errors.Join(err, c.Wait(), json.Unmarshal(rest, &late))
	})
	s := source{end: end}
	if _, err := fmt.Fscanln(out, &s.url); err != nil {
		_, _ = end()
		return source{}, fmt.Errorf("the source of the streams did not start: %w", err)
	}
	return s, nil
}

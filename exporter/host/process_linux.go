package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// userHertz is the unit of the times in /proc/<pid>/stat. The kernel shows 100 a second to
// programs on every architecture that Go runs on.
const userHertz = 100

// Load reads /proc/loadavg.
func (r *Reader) Load() (Load, error) {
	b, err := os.ReadFile(filepath.Join(r.ProcFS, "loadavg"))
	if err != nil {
		return Load{}, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return Load{}, fmt.Errorf("loadavg: %q has fewer than three numbers", b)
	}
	var l Load
	for i := range l {
		if l[i], err = strconv.ParseFloat(fields[i], 64); err != nil {
			return Load{}, fmt.Errorf("loadavg: %w", err)
		}
	}
	return l, nil
}

// booted returns when the machine was started; nil where /proc doesn't tell.
func (r *Reader) booted() (*float64, error) {
	b, err := os.ReadFile(filepath.Join(r.ProcFS, "stat"))
	if err != nil {
		return nil, err
	}
	_, after, found := bytes.Cut(b, []byte("\nbtime "))
	if !found {
		return nil, nil
	}
	value, _, _ := bytes.Cut(after, []byte("\n"))
	t, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
	if err != nil {
		return nil, fmt.Errorf("stat: btime: %w", err)
	}
	return &t, nil
}

// PickedProcesses reads the processes that the options pick, up to 200. One that ends meanwhile is
// left out.
func (r *Reader) PickedProcesses() ([]Process, error) {
	if r.Processes == nil {
		return nil, ErrUnsupported
	}
	entries, err := os.ReadDir(r.ProcFS)
	if err != nil {
		return nil, err
	}
	booted, err := r.booted()
	if err != nil {
		return nil, err
	}
	var picked []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || len(picked) == maxProcesses {
			continue
		}
		dir := filepath.Join(r.ProcFS, e.Name())
		if !r.picks(dir) {
			continue
		}
		if p, err := parseProcess(dir, r.pageSize, booted); err == nil {
			p.PID = pid
			picked = append(picked, p)
		}
	}
	return picked, nil
}

// picks reports whether the name or the command line fits. The command line never leaves here: it
// may hold secrets.
func (r *Reader) picks(dir string) bool {
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return false
	}
	if r.Processes.Match(bytes.TrimSpace(name)) {
		return true
	}
	command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	return err == nil && r.Processes.Match(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))
}

// parseProcess reads /proc/<pid>/stat. The name is in parentheses and may hold some itself.
func parseProcess(dir string, pageSize uint64, booted *float64) (Process, error) {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, err
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Process{}, fmt.Errorf("stat: no name in %q", b)
	}
	// The fields after the name, from the state, which proc(5) numbers 3.
	fields := strings.Fields(string(b[end+1:]))
	const first, user, system, threads, started, virtual, resident = 3, 14, 15, 20, 22, 23, 24
	if len(fields) <= resident-first {
		return Process{}, fmt.Errorf("stat: %d fields after the name", len(fields))
	}
	var bad error
	number := func(field int) float64 {
		v, err := strconv.ParseUint(fields[field-first], 10, 64)
		if err != nil && bad == nil {
			bad = fmt.Errorf("stat: field %d: %w", field, err)
		}
		return float64(v)
	}
	n := number(threads)
	p := Process{
		// The kernel cuts it after 15 bytes, which may be inside a character.
		Name: strings.ToValidUTF8(string(b[open+1:end]), "\uFFFD"),
		User: number(user) / userHertz, System: number(system) / userHertz,
		Resident: uint64(number(resident)) * pageSize, Virtual: uint64(number(virtual)), Threads: &n,
	}
	if booted != nil {
		t := *booted + number(started)/userHertz
		p.Started = &t
	}
	return p, bad
}

// ProcessName returns the name of a process, or "" where it can't be told: in a container that
// doesn't see the machine's processes.
func (r *Reader) ProcessName(pid uint32) string {
	b, err := os.ReadFile(filepath.Join(r.ProcFS, strconv.FormatUint(uint64(pid), 10), "comm"))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(bytes.TrimSpace(b)), "\uFFFD")
}

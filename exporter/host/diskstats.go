package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// sectorBytes is the unit of /proc/diskstats, whatever the sector size of the disk.
const sectorBytes = 512

// The numbers of a line of /proc/diskstats after the device's name, as in
// Documentation/admin-guide/iostats.rst. Some containers print odd counts of them.
const (
	fieldsBasic   = 11
	fieldsDiscard = 15
	fieldsFlush   = 17
)

// parseDiskstats reads every line it can; the error names those it couldn't. The parser of procfs
// is not used because it stops at the first such line.
func parseDiskstats(r io.Reader) ([]Disk, error) {
	var disks []Disk
	var bad []error
	seen := map[string]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			continue
		}
		d, err := parseDisk(line)
		switch {
		case err != nil:
			bad = append(bad, fmt.Errorf("diskstats: %w", err))
		case seen[d.Device]:
			bad = append(bad, fmt.Errorf("diskstats: %s is there twice", d.Device))
		default:
			seen[d.Device] = true
			disks = append(disks, d)
		}
	}
	return disks, errors.Join(append(bad, lines.Err())...)
}

func parseDisk(line string) (Disk, error) {
	fields := strings.Fields(line)
	if len(fields) < 3+fieldsBasic {
		return Disk{}, fmt.Errorf("a line of %d fields, want at least %d: %q", len(fields), 3+fieldsBasic, line)
	}
	n := make([]uint64, len(fields)-3)
	for i, f := range fields[3:] {
		v, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return Disk{}, fmt.Errorf("%s: field %d: %w", fields[2], i+4, err)
		}
		n[i] = v
	}
	io := func(n []uint64) IO {
		return IO{Completed: n[0], Merged: n[1], Bytes: n[2] * sectorBytes, Seconds: seconds(n[3])}
	}
	inFlight, busy, weighted := float64(n[8]), seconds(n[9]), seconds(n[10])
	d := Disk{
		Device: fields[2], Reads: io(n[0:4]), Writes: io(n[4:8]),
		InFlight: &inFlight, BusySeconds: &busy, WeightedSeconds: &weighted,
	}
	if len(n) >= fieldsDiscard {
		discards := io(n[11:15])
		d.Discards = &discards
	}
	if len(n) >= fieldsFlush {
		d.Flushes = &IO{Completed: n[15], Seconds: seconds(n[16])}
	}
	return d, nil
}

// seconds converts the kernel's milliseconds.
func seconds(ms uint64) float64 { return float64(ms) / 1000 }

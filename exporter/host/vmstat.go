package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// parseVMStat reads /proc/vmstat. pswpin and pswpout count pages; pgpgin and pgpgout, in spite of
// their names, count KiB.
func parseVMStat(r io.Reader, pageSize uint64) (Paging, error) {
	var p Paging
	into := map[string]struct {
		field **uint64
		bytes uint64
	}{
		"pswpin":  {&p.SwapIn, pageSize},
		"pswpout": {&p.SwapOut, pageSize},
		"pgpgin":  {&p.PagedIn, 1024},
		"pgpgout": {&p.PagedOut, 1024},
	}
	var bad []error
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		target, ok := into[name]
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if err != nil {
			bad = append(bad, fmt.Errorf("vmstat: %s: %w", name, err))
			continue
		}
		n *= target.bytes
		*target.field = &n
	}
	return p, errors.Join(append(bad, lines.Err())...)
}

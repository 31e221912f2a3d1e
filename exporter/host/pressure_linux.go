package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Pressure reads /proc/pressure, which a kernel may lack or have turned off.
func (r *Reader) Pressure() ([]Pressure, error) {
	var all []Pressure
	var bad []error
	for _, resource := range []string{"cpu", "io", "irq", "memory"} {
		p, err := r.pressure(resource)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EOPNOTSUPP):
			// irq came later than the others; psi=0 on the kernel's command line turns all off.
		case err != nil:
			bad = append(bad, err)
		default:
			all = append(all, p)
		}
	}
	if all == nil && bad == nil {
		return nil, fmt.Errorf("%w: the kernel counts no pressure", ErrUnsupported)
	}
	return all, errors.Join(bad...)
}

func (r *Reader) pressure(resource string) (Pressure, error) {
	f, err := os.Open(filepath.Join(r.ProcFS, "pressure", resource))
	if err != nil {
		return Pressure{}, err
	}
	defer f.Close()
	p, err := parsePressure(f)
	if err != nil {
		return Pressure{}, fmt.Errorf("pressure/%s: %w", resource, err)
	}
	p.Resource = resource
	if resource == "cpu" {
		p.Full = nil // is there since 5.13 and always 0 for the whole system
	}
	return p, nil
}

// parsePressure reads the totals, in µs, of lines such as
// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234".
func parsePressure(in io.Reader) (Pressure, error) {
	var p Pressure
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		_, total, found := strings.Cut(rest, "total=")
		us, err := strconv.ParseUint(total, 10, 64)
		if !found || err != nil {
			return Pressure{}, fmt.Errorf("no total in the line %q", lines.Text())
		}
		seconds := float64(us) / 1e6
		switch kind {
		case "some":
			p.Some = &seconds
		case "full":
			p.Full = &seconds
		}
	}
	return p, lines.Err()
}

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"firstbreach/internal/atomicfile"
)

// The files that WriteDir writes.
const (
	FileJSON  = "report.json"
	FileMD    = "report.md"
	FileHTML  = "report.html"
	FileJUnit = "junit.xml"
)

// WriteDir writes the four files of the report into dir, making it where it is missing. Each file
// is there as a whole or not at all; on an error the older ones of some may still stand.
func (d *Document) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the report's directory: %w", err)
	}
	var files errgroup.Group // each waits for the disk, and the page draws its charts meanwhile
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{FileHTML, d.WriteHTML}, {FileJSON, d.WriteJSON}, {FileMD, d.WriteMarkdown}, {FileJUnit, d.WriteJUnit}} {
		files.Go(func() error {
			var buf bytes.Buffer
			if err := f.write(&buf); err != nil {
				return fmt.Errorf("write %s: %w", f.name, err)
			}
			if err := atomicfile.Write(filepath.Join(dir, f.name), buf.Bytes()); err != nil {
				return fmt.Errorf("write %s: %w", f.name, err)
			}
			return nil
		})
	}
	return files.Wait()
}

// WriteJSON writes report.json.
func (d *Document) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

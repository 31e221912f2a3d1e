package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"firstbreach/internal/atomicfile"
)

// ValidRunID reports whether an ID can be a directory name and a label value as it is.
func ValidRunID(id string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString(id) {
		return fmt.Errorf("run ID %q: use up to 100 letters, digits, dots, dashes and underscores, the first a letter or digit", id)
	}
	return nil
}

// CreateDir makes a run directory. One that holds something already is an error, because a run
// never writes over another; only the store of the run may be there before it.
func CreateDir(dir string) error {
	entries, err := os.ReadDir(dir)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == StoreDir })
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("run directory: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("run directory %s is not empty (it holds %s): name another with --out, or move it away", dir, entries[0].Name())
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	return nil
}

// WriteManifest replaces the manifest in a run directory: whoever reads it sees the old one or the
// new one, whole, even after a crash.
func WriteManifest(dir string, m Manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(dir, ManifestFile), append(data, '\n')); err != nil {
		return fmt.Errorf("write the manifest (is the disk full?): %w", err)
	}
	return nil
}

// ReadManifest reads the manifest of a run directory.
func ReadManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return Manifest{}, fmt.Errorf("read the manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", path, err)
	}
	if m.Schema != ManifestSchema {
		return Manifest{}, fmt.Errorf("%s: schema %d; this release reads schema %d", path, m.Schema, ManifestSchema)
	}
	return m, nil
}

package routing

import (
	"os"

	"github.com/goccy/go-yaml"

	"firstbreach/internal/strictyaml"
)

// LoadBase reads global settings and receivers that stand already: a file with the Alertmanager's own
// keys global and receivers. The error is a *strictyaml.Error.
func LoadBase(path string) (Base, error) {
	b := Base{Path: path}
	src, err := os.ReadFile(path)
	if err != nil {
		return b, strictyaml.Errorf(path, "name a file with global: and receivers: of an Alertmanager", "can't be read: %v", err)
	}
	var f struct {
		Global    map[string]any   `yaml:"global"`
		Receivers []map[string]any `yaml:"receivers"`
	}
	if err := yaml.UnmarshalWithOptions(src, &f, yaml.Strict()); err != nil {
		return b, strictyaml.Errorf(path, "keep global: and receivers: only; the routes are generated", "%s", yaml.FormatError(err, false, false))
	}
	b.Global, b.Receivers = f.Global, f.Receivers
	return b, nil
}

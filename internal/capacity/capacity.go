// Package capacity is the model of capacity.yaml: what a load test showed to hold. The analysis
// writes it, the alert rules read it. It measures nothing and knows no rule.
package capacity

import (
	"fmt"
	"os"
	"time"

	"github.com/goccy/go-yaml"

	"firstbreach/internal/atomicfile"
	"firstbreach/internal/strictyaml"
)

// APIVersion is the only apiVersion this release reads and writes.
const APIVersion = "firstbreach/v1"

// File is one measured number with where it comes from.
type File struct {
	APIVersion  string            `yaml:"apiVersion"`
	Service     string            `yaml:"service"`
	Engine      string            `yaml:"engine"`
	Run         string            `yaml:"run"`         // id of the load test
	At          time.Time         `yaml:"at"`          // when it ended
	Concurrency int               `yaml:"concurrency"` // the highest step of the ladder up to which all held
	Conditions  map[string]string `yaml:"conditions"`  // model, engine version, host … of the run

	Path string `yaml:"-"`
}

// Load reads a file. The error is a *strictyaml.Error that lists every fault with its line and fix.
func Load(path string) (*File, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, strictyaml.Errorf(path, "write it with analyze report --run DIR --write-capacity alerts/capacity.yaml", "can't be read: %v", err)
	}
	doc, err := strictyaml.Parse(path, src)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Conditions: map[string]string{}}
	root := doc.Root()
	m := root.Map("apiVersion", "service", "engine", "run", "at", "concurrency", "conditions")
	if v := m.Get("apiVersion"); v.Require("write apiVersion: " + APIVersion) {
		f.APIVersion, _ = v.OneOf(APIVersion)
	}
	for _, text := range []struct {
		key string
		to  *string
	}{{"service", &f.Service}, {"engine", &f.Engine}, {"run", &f.Run}} {
		if v := m.Get(text.key); v.Require("generate the file again with analyze report --write-capacity") {
			*text.to, _ = v.NonEmpty()
		}
	}
	if v := m.Get("at"); v.Require("write when the run ended, such as 2026-11-30T09:00:00Z") {
		if text, ok := v.Scalar(); ok {
			if f.At, err = time.Parse(time.RFC3339, text); err != nil {
				v.Reject(fmt.Sprintf("%q is not a time", text), "write it as 2026-11-30T09:00:00Z")
			}
		}
	}
	if v := m.Get("concurrency"); v.Require("write the measured concurrency") {
		n, ok := v.Int()
		if ok && n < 1 {
			v.Reject("must be at least 1", "measure again: a run in which no step held has no capacity")
		}
		f.Concurrency = n
	}
	for _, e := range m.Get("conditions").Entries() {
		if text, ok := e.Value.Scalar(); ok {
			f.Conditions[e.Name] = text
		}
	}
	return f, doc.Err()
}

// Write writes the file whole or not at all.
func (f *File) Write(path string) error {
	f.APIVersion = APIVersion
	text, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("capacity: %w", err)
	}
	head := "# Measured by a load test: analyze report --write-capacity. The capacity alert stands at this number.\n"
	if err := atomicfile.Write(path, append([]byte(head), text...)); err != nil {
		return fmt.Errorf("%s can't be written: %w", path, err)
	}
	return nil
}

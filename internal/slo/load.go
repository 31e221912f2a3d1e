package slo

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"firstbreach/internal/signal"
	"firstbreach/internal/strictyaml"
)

// DefaultWindow is the error budget period of a file that names none.
const DefaultWindow = 30 * 24 * time.Hour

// Load reads and validates an SLO file. The error is a *strictyaml.Error that lists every fault of
// the file with its line, key and fix.
func Load(path string) (*File, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, strictyaml.Errorf(path, "name an SLO file with --slo", "can't be read: %v", plainCause(err))
	}
	return Parse(path, src)
}

// LoadAll reads the files of several services and lists the faults of all of them at once. Two files of
// one service are refused: what is generated of one would replace that of the other, or record the same
// series twice.
func LoadAll(paths []string) ([]*File, error) {
	var files []*File
	var problems []strictyaml.Problem
	for _, path := range paths {
		f, err := Load(path)
		var listed *strictyaml.Error
		if errors.As(err, &listed) {
			problems = append(problems, listed.Problems...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, other := range files {
			if other.Service == f.Service {
				problems = append(problems, strictyaml.Problem{File: path, Key: "service",
					Message: fmt.Sprintf("%s is the service of %s as well: what is generated of the two would replace each other", f.Service, other.Path),
					Fix:     "put all objectives of a service into one file, or give the services different names"})
			}
		}
		files = append(files, f)
	}
	if len(problems) > 0 {
		return nil, &strictyaml.Error{Problems: problems}
	}
	return files, nil
}

// Parse is Load for text in memory; path names it in errors.
func Parse(path string, src []byte) (*File, error) {
	doc, err := strictyaml.Parse(path, src)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Source: src}
	f.read(doc.Root())
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) read(root strictyaml.Value) {
	m := root.Map("apiVersion", "service", "engine", "selectors", "window", "owners", "objectives")
	if !root.IsMap() {
		return
	}
	if v := m.Get("apiVersion"); v.Require("write apiVersion: " + APIVersion) {
		f.APIVersion, _ = v.OneOf(APIVersion)
	}
	if v := m.Get("service"); v.Require("write the name of your service, such as chat") {
		f.Service = readName(v)
	}
	if v := m.Get("engine"); v.Require("write one of " + strings.Join(signal.Names(), ", ")) {
		f.Engine = readEngine(v)
	}
	f.Selectors = readSelectors(m.Get("selectors"))
	f.Window = readWindow(m.Get("window"))
	f.Owners = readOwners(m.Get("owners"))
	f.readObjectives(m.Get("objectives"))
}

func readEngine(v strictyaml.Value) string {
	if text, ok := v.Text(); ok && strings.EqualFold(text, "ollama") {
		v.Reject("Ollama has no metrics of its own", "write probe: in production its objectives are then read from the probe's requests")
		return ""
	}
	engine, _ := v.OneOf(signal.Names()...)
	return engine
}

// name is what can stand in a label, a rule name, a file name and a URL without quoting.
var name = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
var notName = regexp.MustCompile(`[^A-Za-z0-9]+`)

func readName(v strictyaml.Value) string {
	text, ok := v.NonEmpty()
	if !ok {
		return ""
	}
	if name.MatchString(text) {
		return text
	}
	fix := "write a name such as chat-ttft"
	if slug := strings.Trim(notName.ReplaceAllString(text, "-"), "-"); name.MatchString(slug) {
		fix = "write " + strings.ToLower(slug)
	}
	v.Reject(fmt.Sprintf("%q can't be used as a label: at most 63 letters, digits and - _ . between them", text), fix)
	return ""
}

func readSelectors(v strictyaml.Value) Selectors {
	m := v.Map("engine", "host", "gpu", "probe")
	return Selectors{
		Engine: readMatchers(m.Get("engine")),
		Host:   readMatchers(m.Get("host")),
		GPU:    readMatchers(m.Get("gpu")),
		Probe:  readMatchers(m.Get("probe")),
	}
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func readMatchers(v strictyaml.Value) map[string]string {
	matchers := map[string]string{}
	for _, e := range v.Entries() {
		switch {
		case !labelName.MatchString(e.Name):
			e.Value.Reject("is not a Prometheus label name", "use letters, digits and _, not beginning with a digit")
		case e.Name == "__name__":
			e.Value.Reject("the metric's name comes from the catalogue", "remove it")
		case e.Name == signal.LabelRole:
			e.Value.Reject("role is set by the scrape configuration and added where it is needed", "remove it")
		default:
			if text, ok := e.Value.NonEmpty(); ok {
				matchers[e.Name] = text
			}
		}
	}
	if len(matchers) == 0 {
		return nil
	}
	return matchers
}

func readWindow(v strictyaml.Value) time.Duration {
	if !v.Present() {
		return DefaultWindow
	}
	d, ok := v.Duration()
	if ok && (d < 24*time.Hour || d > 366*24*time.Hour) {
		v.Reject("an error budget is kept over 1d to 366d", "write 30d")
		return 0
	}
	return d
}

func readOwners(v strictyaml.Value) map[string]Owner {
	owners := map[string]Owner{}
	for _, e := range v.Entries() {
		if e.Name == "" || strings.TrimSpace(e.Name) != e.Name || len(e.Name) > 100 {
			e.Value.Reject("is not a usable owner name", "write a team's name, at most 100 characters")
			continue
		}
		contact := e.Value.Map("contact").Get("contact")
		owner := Owner{}
		if e.Value.IsMap() && contact.Require(`write {contact: "#channel"}`) {
			owner.Contact, _ = contact.NonEmpty()
			owner.Line = contact.Line()
		}
		owners[e.Name] = owner
	}
	return owners
}

func (f *File) readObjectives(v strictyaml.Value) {
	if !v.Require("write at least one, such as {name: success, layer: user, signal: success_ratio, target: 99%}") {
		return
	}
	items := v.List()
	lineOf := map[string]int{}
	perRequest, whole := false, true
	for _, item := range items {
		o, ok := readObjective(item, f.Owners)
		perRequest = perRequest || o.Kind.PerRequest() && o.Signal != ""
		whole = whole && ok
		if first, twice := lineOf[o.Name]; twice && o.Name != "" {
			item.Reject(fmt.Sprintf("the name %s is used twice, first on line %d", o.Name, first), "give each objective a name of its own")
		} else {
			lineOf[o.Name] = o.Line
		}
		f.Objectives = append(f.Objectives, o)
	}
	if !perRequest && whole && v.IsList() {
		v.Reject("has no user objective that every request is judged by, so no load test could find a breach",
			"add one, such as {name: ttft, layer: user, signal: time_to_first_token, p95: 750ms}")
	}
}

// OwnerNames lists the declared owners, sorted.
func (f *File) OwnerNames() []string { return slices.Sorted(maps.Keys(f.Owners)) }

// PerRequest lists the objectives that get a verdict per step, in the order of the file.
func (f *File) PerRequest() []Objective {
	return slices.DeleteFunc(slices.Clone(f.Objectives), func(o Objective) bool { return !o.Kind.PerRequest() })
}

// plainCause leaves away the path that os errors repeat.
func plainCause(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}

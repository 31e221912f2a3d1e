package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

// Class is one kind of request of a mix. What it leaves out is that of the plan.
type Class struct {
	Name         string
	Weight       int               // its share of the requests is Weight out of the sum of all
	Prompts      *Prompts          // nil: those of fixed
	OutputTokens int               // 0: those of fixed
	Priority     *int              // sent as the field "priority", where the API knows it; nil: none
	Headers      map[string]string // further request headers, beside those of the target
	MaxInFlight  int               // of an open loop: it is dropped while so many requests of all classes are in flight; 0: as all are
	Objectives   []string          // of the SLO file, those that it is held to; nil: all
}

// Bounds of a mix.
const (
	MaxClasses = 10
	maxWeight  = 1000
)

var className = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// ForClass is the plan as it is for one class alone: its prompts, its length of answers, its headers,
// its priority.
func (p *Plan) ForClass(i int) *Plan {
	one, c := *p, p.Classes[i]
	one.Classes = nil
	if c.Prompts != nil {
		one.Fixed.Prompts = *c.Prompts
	}
	if c.OutputTokens > 0 {
		one.Fixed.OutputTokens = c.OutputTokens
	}
	one.Fixed.Priority = c.Priority
	one.Target.Headers = map[string]string{}
	for _, headers := range []map[string]string{p.Target.Headers, c.Headers} {
		for k, v := range headers {
			one.Target.Headers[k] = v
		}
	}
	return &one
}

// ClassOf says of which class the n-th request of a step is, counted from 0: in every run of as many
// requests as the weights add up to each class has its share, spread evenly.
func (p *Plan) ClassOf(n int) int {
	sum := 0
	for _, c := range p.Classes {
		sum += c.Weight
	}
	n %= sum
	current := make([]int, len(p.Classes))
	for {
		best := 0
		for i, c := range p.Classes {
			current[i] += c.Weight
			if current[i] > current[best] {
				best = i
			}
		}
		if n == 0 {
			return best
		}
		current[best] -= sum
		n--
	}
}

// CheckObjectives finds classes that name objectives which the SLO file doesn't have.
func (p *Plan) CheckObjectives(f *slo.File) error {
	var names []string
	for _, o := range f.PerRequest() {
		names = append(names, o.Name)
	}
	var problems []strictyaml.Problem
	for i, c := range p.Classes {
		for _, o := range c.Objectives {
			if !slices.Contains(names, o) {
				problems = append(problems, strictyaml.Problem{File: p.Path, Key: fmt.Sprintf("classes[%d].objectives", i),
					Message: fmt.Sprintf("%s is no per-request objective of the SLO file", o), Fix: "write some of " + strings.Join(names, ", ")})
			}
		}
	}
	if len(problems) > 0 {
		return &strictyaml.Error{Problems: problems}
	}
	return nil
}

func (r *reader) classes(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	items := v.List()
	if v.IsList() && (len(items) < 2 || len(items) > MaxClasses) {
		v.Reject(fmt.Sprintf("has %s", count(len(items), "entry")), fmt.Sprintf("write 2 to %d classes, or remove the key", MaxClasses))
		return
	}
	names := map[string]bool{}
	for _, item := range items {
		r.class(item, names)
	}
}

func (r *reader) class(v strictyaml.Value, names map[string]bool) {
	m := v.Map("name", "weight", "prompts", "output_tokens", "priority", "headers", "max_in_flight", "objectives")
	if !v.IsMap() {
		return
	}
	var c Class
	if n := m.Get("name"); n.Require("name the class, such as name: chat") {
		text, ok := n.NonEmpty()
		switch {
		case ok && !className.MatchString(text):
			n.Reject(fmt.Sprintf("%q can't be a label", text), "use small letters, digits, - and _, and begin with a letter")
		case ok && names[text]:
			n.Reject(fmt.Sprintf("%q is the name of another class", text), "give each its own name")
		}
		c.Name, names[text] = text, true
	}
	if w := m.Get("weight"); w.Require("write its share of the requests, such as weight: 3") {
		readInt(w, &c.Weight, 1, maxWeight)
	}
	if p := m.Get("prompts"); p.Present() {
		own := reader{plan: &Plan{Target: r.plan.Target}, doc: r.doc, dir: r.dir}
		own.prompts(p)
		c.Prompts = &own.plan.Fixed.Prompts
	}
	readInt(m.Get("output_tokens"), &c.OutputTokens, 1, MaxTokens)
	if p := m.Get("priority"); p.Present() {
		if n, ok := p.Int(); ok {
			c.Priority = &n
		}
		if api := r.plan.Target.API; api == OllamaChat || api == OllamaGenerate {
			p.Reject("is nothing that "+api+" knows", "remove it, or write headers that a gateway in front of it reads")
		}
	}
	c.Headers = readHeaders(m.Get("headers"))
	if f := m.Get("max_in_flight"); f.Present() {
		r.concurrency(f, &c.MaxInFlight)
	}
	if o := m.Get("objectives"); o.Present() {
		for _, item := range o.List() {
			if text, ok := item.NonEmpty(); ok {
				c.Objectives = append(c.Objectives, text)
			}
		}
		if o.IsList() && len(c.Objectives) == 0 {
			o.Reject("is empty", "write the names of objectives of the SLO file, or remove the key")
		}
	}
	r.plan.Classes = append(r.plan.Classes, c)
}

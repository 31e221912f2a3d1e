package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"firstbreach/internal/strictyaml"
)

// Bounds of a plan. They are far above what a first breach needs; a value beyond one is a slip of
// the keyboard, and some slips are expensive for whoever runs the target.
const (
	MaxConcurrency           = 4096 // isolated, staging
	MaxConcurrencyProduction = 64
	MaxRate                  = 10000 // requests per second; isolated, staging
	MaxRateProduction        = 50
	DefaultInFlight          = 512 // of an open loop; in production its cap on concurrency
	MaxRounds                = 100
	MaxSteps                 = 200     // rungs of the ladder
	MaxRequests              = 1000000 // per step
	MaxTokens                = 1 << 20 // of a prompt or an answer
)

// maxConcurrency is the greatest number of requests at once that an environment allows.
func (e Environment) maxConcurrency() int {
	if e == Production {
		return MaxConcurrencyProduction
	}
	return MaxConcurrency
}

// maxRate is the greatest rate that an environment allows, in requests per second.
func (e Environment) maxRate() float64 {
	if e == Production {
		return MaxRateProduction
	}
	return MaxRate
}

// Defaults are what a plan file that says nothing but what it must has. Target, prompts and ladder
// have no default.
func Defaults() Plan {
	return Plan{
		APIVersion: APIVersion,
		Fixed:      Fixed{Seed: 7},
		Rounds:     3,
		Baseline:   Level{1},
		Recovery:   Level{1},
		Step:       Step{Requests: 100, MinDuration: 10 * time.Second, MaxDuration: 10 * time.Minute},
		Cooldown:   2 * time.Second,
		Timeouts:   Timeouts{Connect: 5 * time.Second, FirstToken: 30 * time.Second, Idle: 30 * time.Second, Total: 2 * time.Minute},
		Stop:       Stop{ErrorRatio: 0.5, After: 20},
		Restore:    Restore{Timeout: time.Minute},
	}
}

// Load reads and validates a plan file and the prompt file that it names. The error is a
// *strictyaml.Error that lists every fault with its line, key and fix.
func Load(path string) (*Plan, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, strictyaml.Errorf(path, "name a plan file with --plan", "can't be read: %v", plainCause(err))
	}
	return Parse(path, src)
}

// Parse is Load for text in memory. path names it in errors, and the files that the plan names are
// taken relative to its folder; with path "" relative to the working directory.
func Parse(path string, src []byte) (*Plan, error) {
	doc, err := strictyaml.Parse(path, src)
	if err != nil {
		return nil, err
	}
	p := Defaults()
	p.Path, p.Source = path, src
	r := reader{plan: &p, doc: doc, dir: filepath.Dir(path)}
	r.read(doc.Root())
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return &p, nil
}

// reader fills a plan from a document.
type reader struct {
	plan *Plan
	doc  *strictyaml.Document
	dir  string
}

// topKeys are the outermost keys of a plan file.
var topKeys = []string{"apiVersion", "environment", "target", "fixed", "classes", "rounds", "baseline", "ramp", "recovery", "soak", "fluctuation", "trace", "drills",
	"step", "cooldown", "timeouts", "stop", "restore"}

func (r *reader) read(root strictyaml.Value) {
	m := root.Map(topKeys...)
	if !root.IsMap() {
		return
	}
	p := r.plan
	if v := m.Get("apiVersion"); v.Require("write apiVersion: " + APIVersion) {
		v.OneOf(APIVersion)
	}
	if v := m.Get("environment"); v.Require("say what the target is: isolated, staging or production") {
		env, _ := v.OneOf(string(Isolated), string(Staging), string(Production))
		p.Environment = Environment(env)
	}
	r.target(m.Get("target"))
	r.fixed(m.Get("fixed"))
	r.classes(m.Get("classes"))
	readInt(m.Get("rounds"), &p.Rounds, 1, MaxRounds)
	r.ramp(m.Get("ramp"))
	r.soak(m.Get("soak"))
	r.fluctuations(m.Get("fluctuation"))
	r.trace(m.Get("trace"))
	r.drills(m.Get("drills"))
	r.settings(m)
	r.restore(m.Get("restore"))
}

// settings reads what has a default and names no file.
func (r *reader) settings(m strictyaml.Map) {
	r.level(m.Get("baseline"), &r.plan.Baseline)
	r.level(m.Get("recovery"), &r.plan.Recovery)
	r.step(m.Get("step"))
	readDuration(m.Get("cooldown"), &r.plan.Cooldown)
	r.timeouts(m.Get("timeouts"))
	r.stop(m.Get("stop"))
}

func (r *reader) level(v strictyaml.Value, l *Level) {
	c := v.Map("concurrency").Get("concurrency")
	if v.IsMap() && c.Require("write {concurrency: 1}") {
		r.concurrency(c, &l.Concurrency)
	}
}

// concurrency reads one level of load within the environment's cap.
func (r *reader) concurrency(v strictyaml.Value, into *int) bool {
	n, ok := v.Int()
	switch {
	case !ok:
		return false
	case n < 1:
		v.Reject(fmt.Sprintf("%d is no load", n), "write at least 1")
		return false
	case r.plan.Environment == Production && n > MaxConcurrencyProduction:
		v.Reject(fmt.Sprintf("%d is more than production allows", n), fmt.Sprintf("stay at or below %d, or test a copy with environment: isolated", MaxConcurrencyProduction))
		return false
	case n > MaxConcurrency:
		v.Reject(fmt.Sprintf("%d is more than one client may hold", n), fmt.Sprintf("stay at or below %d", MaxConcurrency))
		return false
	}
	*into = n
	return true
}

// step reads either a number of requests with its bounds in time, or a fixed time.
func (r *reader) step(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	m := v.Map("requests", "min_duration", "max_duration", "duration")
	requests, duration := m.Get("requests"), m.Get("duration")
	shortest, longest := m.Get("min_duration"), m.Get("max_duration")
	s := &r.plan.Step
	switch {
	case !v.IsMap():
	case requests.Present() && duration.Present():
		duration.Reject("stands beside requests", "keep one: requests measures a number of requests, duration a fixed time")
	case duration.Present():
		*s = Step{}
		s.Duration, _ = duration.PositiveDuration()
		for _, w := range []strictyaml.Value{shortest, longest} {
			if w.Present() {
				w.Reject("has no meaning beside duration", "remove it")
			}
		}
	case !requests.Present():
		v.Reject("has neither requests nor duration", "write step: {requests: 100}")
	default:
		readInt(requests, &s.Requests, 1, MaxRequests)
		if d, ok := longest.PositiveDuration(); ok {
			s.MaxDuration = d
			s.MinDuration = min(s.MinDuration, d)
		}
		if d, ok := shortest.Duration(); ok {
			s.MinDuration = d
			if !longest.Present() {
				s.MaxDuration = max(s.MaxDuration, d)
			}
		}
		if s.MinDuration > s.MaxDuration {
			shortest.Reject(fmt.Sprintf("%v is longer than max_duration %v", s.MinDuration, s.MaxDuration), "swap the two")
		}
	}
}

func (r *reader) timeouts(v strictyaml.Value) {
	m := v.Map("connect", "first_token", "idle", "total")
	t := &r.plan.Timeouts
	for _, f := range []struct {
		key  string
		into *time.Duration
	}{{"connect", &t.Connect}, {"first_token", &t.FirstToken}, {"idle", &t.Idle}, {"total", &t.Total}} {
		if d, ok := m.Get(f.key).PositiveDuration(); ok {
			*f.into = d
		}
	}
}

func (r *reader) stop(v strictyaml.Value) {
	m := v.Map("error_ratio", "ttft_p95", "e2e_p95", "after")
	if ratio, ok := m.Get("error_ratio").Share(); ok {
		r.plan.Stop.ErrorRatio = ratio
	}
	readDuration(m.Get("ttft_p95"), &r.plan.Stop.TTFTP95)
	readDuration(m.Get("e2e_p95"), &r.plan.Stop.E2EP95)
	readInt(m.Get("after"), &r.plan.Stop.After, 1, MaxRequests)
}

// readInt reads a whole number between two bounds; what is absent or wrong leaves the default.
func readInt(v strictyaml.Value, into *int, least, most int) {
	n, ok := v.Int()
	if !ok {
		return
	}
	if n < least || n > most {
		v.Reject(fmt.Sprintf("%d is not between %d and %d", n, least, most), "write a number in that range")
		return
	}
	*into = n
}

func readDuration(v strictyaml.Value, into *time.Duration) {
	if d, ok := v.Duration(); ok {
		*into = d
	}
}

// path makes a path that a plan names relative to the plan's folder.
func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

// plainCause leaves away the path that os errors repeat.
func plainCause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// count writes n with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

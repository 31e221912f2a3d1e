package serve

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	"firstbreach/internal/atomicfile"
)

// skew is how far a clock may be set back without anything being said: the next due time comes anyway.
const skew = time.Minute

// progress says by schedule how far its due times were dealt with. It is the text of state.json.
type progress map[string]reached

type reached struct {
	Since time.Time `json:"since"` // no time up to it counts as due: the schedule was new then, or changed
	Last  time.Time `json:"last"`  // due time that was dealt with last; Since before the first
	Cron  string    `json:"cron"`  // with its zone
}

// readProgress reads what was dealt with before a restart; none of it with an error.
func readProgress(dir string) (progress, error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return progress{}, nil
	}
	p := progress{}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p == nil { // the text may be null
		return progress{}, err
	}
	return p, nil
}

// lastDue is the time at which a report was due last; zero when none was yet.
func (p progress) lastDue(s Schedule, now time.Time) time.Time {
	r, ok := p[s.Name]
	if !ok || r.Cron != s.spec() {
		return time.Time{}
	}
	if due, _ := s.due(r.Last, now); !due.IsZero() {
		return due
	}
	if r.Last.After(r.Since) {
		return r.Last
	}
	return time.Time{}
}

// last is up to when the due times of a schedule were dealt with. A schedule that is new or was changed
// begins now, and is not known.
func (s *Server) last(c *Config, sched Schedule, now time.Time) (last time.Time, known bool) {
	s.mu.Lock()
	r, ok := s.done[sched.Name]
	s.mu.Unlock()
	back := ok && r.Last.Sub(now) > skew
	if ok && r.Cron == sched.spec() && !back {
		return r.Last, true
	}
	if back {
		s.metrics.failures.WithLabelValues("clock").Inc()
		s.Logger.Warn("the clock was set back: reports are made again from now on", "schedule", sched.Name, "last", r.Last, "now", now)
	}
	s.put(c, sched.Name, reached{Since: now, Last: now, Cron: sched.spec()})
	return now, false
}

// reach notes that a schedule was dealt with up to a time.
func (s *Server) reach(c *Config, sched Schedule, last time.Time) {
	s.mu.Lock()
	r := s.done[sched.Name]
	s.mu.Unlock()
	r.Last = last
	s.put(c, sched.Name, r)
}

// put notes how far a schedule is, so that a restart makes what was missed, once.
func (s *Server) put(c *Config, name string, r reached) {
	s.mu.Lock()
	s.done[name] = r
	for other := range s.done {
		if !c.has(other) {
			delete(s.done, other)
		}
	}
	text, err := json.MarshalIndent(s.done, "", "  ")
	s.mu.Unlock()
	if err == nil {
		err = s.Note(filepath.Join(c.Reports, stateFile), append(text, '\n'))
	}
	if err != nil {
		s.metrics.failures.WithLabelValues("write").Inc()
		s.Logger.Error("what was done can't be noted: after a restart the last report may be made again", "err", err)
	}
}

// note writes a small file into a folder, which is made where it isn't there.
func note(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, text)
}

// due is the last time after last at which a report was due, and how many before it were passed over;
// zero when none is due.
func (s Schedule) due(last, now time.Time) (due time.Time, missed int) {
	wait := s.delay()
	for t := s.times.Next(last); !t.IsZero() && !t.Add(wait).After(now); t = s.times.Next(t) {
		if !due.IsZero() {
			missed++
		}
		due = t
	}
	return due, missed
}

// before is a moment from which a due time is the next one.
func (s Schedule) before(due time.Time) time.Time { return due.Add(-time.Second) }

// spec is what decides when the schedule is due.
func (s Schedule) spec() string { return s.times.Location.String() + " " + s.Cron }

// delay is the schedule's own part of its jitter.
func (s Schedule) delay() time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Name + "\x00" + s.Cron))
	return time.Duration(h.Sum64() % uint64(s.Jitter)).Truncate(time.Second)
}

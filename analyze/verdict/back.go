package verdict

// Back says how long a service took to be back after something: the time lies in (From, To], as
// exactly as the scrapes tell.
type Back struct {
	After    string // what the time counts from
	Left     bool   // it did leave its objectives; without that From and To are 0
	From, To float64
	Censored bool // not back when the time to see it ended, From seconds later; To is 0
}

// What "back" means: so many scrapes with so many requests, of which the share that missed is within
// the allowance of every objective.
const (
	backScrapes  = 3
	backRequests = 20
	// silentRequests is how many requests should have ended in a time for it to count that none did.
	silentRequests = 5
)

// back finds when a service that was disturbed at a time was back, counted from since and looked for
// up to until. nil when there are too few requests to tell.
func (s Step) back(objectives []Objective, disturbed, since, until float64) *Back {
	w := s.watching(objectives, until)
	left, after := false, w.lastBefore(since)
	for i := w.lastBefore(disturbed); i+1 < len(w.ps); i++ {
		l := w.look(i)
		switch {
		case !l.in || i < after: // what is before the end of the disturbance is no return
			left = left || l.out
		case !left:
			return &Back{}
		default:
			return &Back{Left: true, From: max(0, w.ps[i].T-since), To: max(0, w.ps[i+1].T-since)}
		}
	}
	if left && w.outAtTheEnd(after) {
		return &Back{Left: true, Censored: true, From: max(0, w.ps[len(w.ps)-1].T-since)}
	}
	return nil
}

// leaves finds when a service first left its objectives, to the scrape before.
func (s Step) leaves(objectives []Objective, from, until float64) (t float64, ok bool) {
	w := s.watching(objectives, until)
	for i := w.lastBefore(from); i+1 < len(w.ps); i++ {
		if l := w.look(i); l.out && l.here {
			return w.ps[i].T, true
		}
	}
	return 0, false
}

// watch is what a phase is watched by.
type watch struct {
	ps      []Progress
	allowed map[string]float64 // by objective
	rate    float64            // requests per second over the phase, of the objective that has most
}

func (s Step) watching(objectives []Objective, until float64) watch {
	w := watch{ps: s.progressUntil(until), allowed: allowances(objectives)}
	if n := len(s.Progress); n > 1 {
		for name := range w.allowed {
			total, _ := grew(s.Progress[0], s.Progress[n-1], name)
			w.rate = max(w.rate, float64(total)/(s.Progress[n-1].T-s.Progress[0].T))
		}
	}
	return w
}

// sight is what the scrapes from one on show.
type sight struct {
	in   bool // within every objective, and so are the requests that ended before the next scrape
	out  bool // not within
	here bool // what is out began before the next scrape
}

// look looks at the scrapes from the i-th on: as many as hold enough requests. A time in which nobody was
// answered is out of every objective, if it is so long that several should have been.
func (w watch) look(i int) sight {
	if w.silent(i) {
		return sight{out: true, here: true}
	}
	j := i + backScrapes
	for ; j < len(w.ps) && !w.enough(i, j); j++ {
	}
	if j >= len(w.ps) {
		return sight{}
	}
	some, over := w.missed(i, i+1)
	_, pooled := w.missed(i, j)
	return sight{in: some && !over && !pooled, out: pooled, here: over}
}

// missed reports whether requests ended between two scrapes, and whether too many of them missed an
// objective.
func (w watch) missed(i, j int) (some, over bool) {
	for name, a := range w.allowed {
		total, bad := grew(w.ps[i], w.ps[j], name)
		some = some || total > 0
		over = over || float64(bad) > a*float64(total)
	}
	return some, over
}

// enough reports whether enough requests ended between two scrapes, for each objective that counts any.
func (w watch) enough(i, j int) bool {
	counted := false
	for name := range w.allowed {
		if _, ok := w.ps[j].Counts[name]; !ok {
			continue
		}
		if total, _ := grew(w.ps[i], w.ps[j], name); total < backRequests {
			return false
		}
		counted = true
	}
	return counted
}

// silent reports whether from a scrape on nobody was answered for so long that several requests should
// have been.
func (w watch) silent(i int) bool {
	j := i
	for j+1 < len(w.ps) {
		if some, _ := w.missed(i, j+1); some {
			break
		}
		j++
	}
	return j >= i+backScrapes && w.rate*(w.ps[j].T-w.ps[i].T) >= silentRequests
}

// outAtTheEnd reports whether too many of the last requests, those after the i-th scrape at most, missed
// an objective, up to the last scrapes, or nobody was answered any more. It is false where there are too
// few to tell.
func (w watch) outAtTheEnd(i int) bool {
	last := len(w.ps) - 1
	for k := last - backScrapes; k >= i; k-- {
		if w.silent(k) {
			return true
		}
		if w.enough(k, last) {
			_, over := w.missed(k, last)
			_, still := w.missed(last-backScrapes, last)
			return over && still
		}
	}
	return false
}

// lastBefore is the index of the last scrape at or before a time, 0 when there is none.
func (w watch) lastBefore(t float64) int {
	i := 0
	for i+1 < len(w.ps) && w.ps[i+1].T <= t {
		i++
	}
	return i
}

// allowances are those of the per-request objectives, by name.
func allowances(objectives []Objective) map[string]float64 {
	allowed := map[string]float64{}
	for _, o := range objectives {
		if a, err := allowance(o.Target); o.perRequest() && err == nil {
			allowed[o.Name], _ = a.Float64()
		}
	}
	return allowed
}

func (s Step) progressUntil(t float64) []Progress {
	var ps []Progress
	for _, p := range s.Progress {
		if p.T <= t {
			ps = append(ps, p)
		}
	}
	return ps
}

// grew is by how much a count grew between two scrapes.
func grew(from, to Progress, name string) (total, bad int64) {
	a, b := from.Counts[name], to.Counts[name]
	return b.Total - a.Total, b.Slow + b.Failed - a.Slow - a.Failed
}

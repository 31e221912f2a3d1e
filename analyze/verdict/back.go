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
)

// back finds when a service that was disturbed at a time was back, counted from since and looked for
// up to until. nil when there are too few requests to tell.
func (s Step) back(objectives []Objective, disturbed, since, until float64) *Back {
	allowed, ps := allowances(objectives), s.progressUntil(until)
	left, out := false, false
	for i := lastBefore(ps, disturbed); i+1 < len(ps); i++ {
		in, enough := inBand(ps[i:], allowed)
		after := i >= lastBefore(ps, since)
		switch {
		case !enough:
			if !out {
				return nil
			}
			return &Back{Left: true, Censored: true, From: max(0, ps[len(ps)-1].T-since)}
		case !in:
			left, out = true, after
		case !after: // what is before the end of the disturbance is no return
		case !left:
			return &Back{}
		default:
			return &Back{Left: true, From: max(0, ps[i].T-since), To: max(0, ps[i+1].T-since)}
		}
	}
	return nil
}

// leaves finds when a service first left its objectives, to the scrape before.
func (s Step) leaves(objectives []Objective, from, until float64) (t float64, ok bool) {
	allowed, ps := allowances(objectives), s.progressUntil(until)
	for i := lastBefore(ps, from); i+1 < len(ps); i++ {
		if in, enough := inBand(ps[i:], allowed); enough && !in && missed(ps[i], ps[i+1], allowed) {
			return ps[i].T, true
		}
	}
	return 0, false
}

// missed reports whether too many of the requests that ended between two scrapes missed an objective, or
// none ended at all.
func missed(from, to Progress, allowed map[string]float64) bool {
	for name, a := range allowed {
		if _, ok := to.Counts[name]; !ok {
			continue
		}
		if total, bad := grew(from, to, name); total == 0 || float64(bad) > a*float64(total) {
			return true
		}
	}
	return false
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

// lastBefore is the index of the last scrape at or before a time, 0 when there is none.
func lastBefore(ps []Progress, t float64) int {
	i := 0
	for i+1 < len(ps) && ps[i+1].T <= t {
		i++
	}
	return i
}

// inBand looks at the scrapes from the first of ps on: as many as hold enough requests. Not too many of
// them may have missed an objective, nor of those that ended between the first two scrapes.
func inBand(ps []Progress, allowed map[string]float64) (in, enough bool) {
	if len(ps) > 1 && missed(ps[0], ps[1], allowed) {
		return false, len(ps) > backScrapes
	}
	for j := backScrapes; j < len(ps); j++ {
		some := true
		for name := range allowed {
			if _, ok := ps[j].Counts[name]; ok {
				total, _ := grew(ps[0], ps[j], name)
				some = some && total >= backRequests
			}
		}
		if some {
			return !missed(ps[0], ps[j], allowed), true
		}
	}
	return false, false
}

// grew is by how much a count grew between two scrapes.
func grew(from, to Progress, name string) (total, bad int64) {
	a, b := from.Counts[name], to.Counts[name]
	return b.Total - a.Total, b.Slow + b.Failed - a.Slow - a.Failed
}

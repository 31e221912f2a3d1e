package verdict

// Holds is the highest concurrency of the ladder up to which every step held: what the service was
// shown to bear. ok is false where the run shows no such thing: nothing held, the run is undecided or
// void, or its ladder is one of rates or of classes, whose sum nobody measured.
func (r Result) Holds() (concurrency int, ok bool) {
	for _, s := range r.Steps {
		if s.Phase != PhaseRamp {
			continue
		}
		if s.Rate > 0 || s.Class != "" {
			return 0, false
		}
	}
	switch {
	case r.State == Breach && r.FirstBreach.LastOK != nil:
		return *r.FirstBreach.LastOK, true
	case r.State != None:
		return 0, false
	}
	for _, s := range r.Steps {
		if s.Phase == PhaseRamp && s.Verdict == OK && s.Concurrency > concurrency {
			concurrency, ok = s.Concurrency, true
		}
	}
	return concurrency, ok
}

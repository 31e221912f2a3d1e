package verdict

// judgeGauge says whether a reading crossed its objective's limit: in at least half of the samples,
// in at least two thirds of the valid rounds that have samples.
func judgeGauge(o Objective, rounds []Step) GaugeResult {
	g := GaugeResult{Name: o.Name, Layer: o.Layer, Signal: o.Signal}
	for _, s := range rounds {
		r, ok := reading(o, s)
		switch {
		case !ok:
			continue
		case r.Missing != "":
			g.Missing = r.Missing
			continue
		case r.Samples == 0:
			continue
		}
		g.Rounds++
		if 2*r.Over >= r.Samples {
			g.RoundsCrossed++
		}
	}
	if g.Rounds > 0 {
		crossed := 3*g.RoundsCrossed >= 2*g.Rounds
		g.Crossed, g.Missing = &crossed, ""
	} else if g.Missing == "" {
		g.Missing = "no sample in a valid round"
	}
	return g
}

// reading finds an objective's own reading: by its name, as an expression or a second limit on one
// signal has it, else by its signal.
func reading(o Objective, s Step) (Reading, bool) {
	if r, ok := s.Readings[o.Name]; ok {
		return r, true
	}
	r, ok := s.Readings[o.Signal]
	return r, ok && o.Signal != ""
}

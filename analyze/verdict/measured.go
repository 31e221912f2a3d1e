package verdict

// measuredOf sums up one step of one round.
func measuredOf(s Step) Measured {
	m := Measured{OK: s.Outcomes["ok"], Aborted: s.Outcomes["aborted"], Outcomes: s.Outcomes, Timeouts: s.Timeouts, Seconds: s.window()}
	for outcome, n := range s.Outcomes {
		if outcome != "aborted" {
			m.Requests += n
		}
	}
	m.rates(s.OutputTokens, s.Good)
	return m
}

// pool sums up the rounds of a step.
func pool(rounds []Step) Measured {
	m := Measured{Outcomes: map[string]int64{}, Timeouts: map[string]int64{}}
	var tokens, good int64
	for _, s := range rounds {
		one := measuredOf(s)
		m.OK += one.OK
		m.Aborted += one.Aborted
		m.Requests += one.Requests
		m.Seconds += one.Seconds
		tokens += s.OutputTokens
		good += s.Good
		for k, n := range s.Outcomes {
			m.Outcomes[k] += n
		}
		for k, n := range s.Timeouts {
			m.Timeouts[k] += n
		}
	}
	m.rates(tokens, good)
	return m
}

func (m *Measured) rates(tokens, good int64) {
	per := func(n int64, by float64) *float64 {
		if by <= 0 {
			return nil
		}
		v := float64(n) / by
		return &v
	}
	m.RequestsPerSecond = per(m.OK, m.Seconds)
	m.OutputTokensPerSecond = per(tokens, m.Seconds)
	m.GoodputPerSecond = per(good, m.Seconds)
	m.SuccessRatio = per(m.OK, float64(m.Requests))
}

// poolReadings joins the readings of the rounds of a step: the mean weighs each sample alike, the
// maximum is that of all. A signal without samples in any round keeps the first reason.
func poolReadings(rounds []Step) map[string]Reading {
	all := map[string]Reading{}
	weighed := map[string]float64{}
	for _, s := range rounds {
		for name, r := range s.Readings {
			sum, seen := all[name]
			if !seen {
				sum = Reading{Layer: r.Layer, Unit: r.Unit, Missing: r.Missing}
			}
			if r.Missing == "" && r.Mean != nil && finite(*r.Mean) {
				weight := float64(max(r.Samples, 1))
				mean := *r.Mean
				if sum.Mean != nil {
					mean = (*sum.Mean*weighed[name] + *r.Mean*weight) / (weighed[name] + weight)
				}
				sum.Mean, sum.Missing = &mean, ""
				weighed[name] += weight
			}
			if r.Max != nil && finite(*r.Max) && (sum.Max == nil || *r.Max > *sum.Max) {
				most := *r.Max
				sum.Max = &most
			}
			sum.Over += r.Over
			sum.Samples += r.Samples
			all[name] = sum
		}
	}
	return all
}

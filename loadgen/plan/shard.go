package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxShards bounds the load generators of one run.
const MaxShards = 256

// Shard is one of several load generators that make one run. Index counts from 0, as Kubernetes
// counts the pods of an Indexed Job. The zero Shard is a run of one generator.
type Shard struct{ Index, Of int }

// ParseShard parses "0/3".
func ParseShard(text string) (Shard, error) {
	left, right, ok := strings.Cut(text, "/")
	i, errI := strconv.Atoi(left)
	n, errN := strconv.Atoi(right)
	switch {
	case !ok || errI != nil || errN != nil:
		return Shard{}, fmt.Errorf("%q is no shard: write its number and how many there are, such as 0/3", text)
	case n < 1 || n > MaxShards:
		return Shard{}, fmt.Errorf("%q has %d shards: there may be 1 to %d", text, n, MaxShards)
	case i < 0 || i >= n:
		return Shard{}, fmt.Errorf("%q: shards count from 0, so those of %d are 0/%d to %d/%d", text, n, n, n-1, n)
	}
	return Shard{i, n}, nil
}

// IsZero reports whether the run isn't sharded.
func (s Shard) IsZero() bool { return s.Of == 0 }

// String is "0/3"; "" when the run isn't sharded.
func (s Shard) String() string {
	if s.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// Share is this shard's part of n slots. The parts of all shards add up to n, and differ by one at
// most; with fewer slots than shards some parts are 0.
func (s Shard) Share(n int) int {
	if s.IsZero() {
		return n
	}
	share := n / s.Of
	if s.Index < n%s.Of {
		share++
	}
	return share
}

// Number is the number, among the requests of all shards, of this shard's n-th request of a step: no
// two shards send the same.
func (s Shard) Number(n int) int {
	if s.IsZero() {
		return n
	}
	return n*s.Of + s.Index
}

// CheckShards refuses what several load generators can't do together without talking to each other.
func (p *Plan) CheckShards() error {
	var errs []error
	refuse := func(key, fix string) { errs = append(errs, fmt.Errorf("%s: %s: %s", p.Path, key, fix)) }
	if p.Step.Duration == 0 {
		refuse("step", "with --shard a step has to last for a fixed time, because no shard knows how many requests the others have sent: write step: {duration: 60s}")
	}
	if len(p.Ramp.Rate) > 0 {
		refuse("ramp.rate", "a ladder of rates can't be sharded: write ramp.concurrency, or leave out --shard")
	}
	if len(p.Classes) > 0 {
		refuse("classes", "a mix of classes can't be sharded: take the classes out of the plan, or leave out --shard")
	}
	if len(p.After()) > 0 {
		refuse(afterKeys, "only rounds can be sharded: take these phases out of the plan, or leave out --shard")
	}
	return errors.Join(errs...)
}

// Edges are the moments of one step of a sharded run, the same for every shard.
type Edges struct {
	Start       time.Time // the load begins
	MeasureFrom time.Time
	MeasureTo   time.Time
	SendUntil   time.Time // the load ends
}

// The bounds of the lead.
const (
	leastLead = time.Second
	mostLead  = time.Minute
)

// Lead is how long the load of a sharded step is held before and after it is measured: a quarter of
// the measured time, between a second and a minute. A request has to end within it.
func (p *Plan) Lead() time.Duration { return min(max(p.Step.Duration/4, leastLead), mostLead) }

// Edges computes the moments of the n-th step of a sharded run, counted from 0 over all rounds, from
// the start of the run and nothing else: so all shards step together without a word between them.
func (p *Plan) Edges(startAt time.Time, n int) Edges {
	lead := p.Lead()
	start := startAt.Add(time.Duration(n) * (lead + p.Step.Duration + lead + p.Cooldown))
	return Edges{
		Start: start, MeasureFrom: start.Add(lead), MeasureTo: start.Add(lead + p.Step.Duration),
		SendUntil: start.Add(lead + p.Step.Duration + lead),
	}
}

package record

// Limit is a reason for which the client itself was the bottleneck of a step. Only the client can
// know these; what shows in the step's own counts, such as requests that were not in flight, is left
// to whoever judges it.
type Limit string

const (
	// LimitLateReads: arrivals were stamped when the client read them, and it read late.
	LimitLateReads Limit = "late_read_stamps"
	// LimitSockets: this machine ran out of sockets or ports.
	LimitSockets Limit = "sockets"
	// LimitShardLate: this shard began the step later than the others.
	LimitShardLate Limit = "shard_late"
	// LimitShardCold: measuring began before this shard's warm-up was over.
	LimitShardCold Limit = "shard_cold"
)

// Limits lists every limit.
func Limits() []Limit { return []Limit{LimitLateReads, LimitSockets, LimitShardLate, LimitShardCold} }

package arrival

// segments keeps count of what a connection read, so that from the kernel's number of segments
// received, asked for now and then, follows how many the latest read had. Reads in between are
// taken to have had as few segments as their length allows: where one had more, the answer errs on
// the side of late.
type segments struct {
	asked uint32 // segments when last asked
	since uint32 // segments of the reads since, the latest one left out
	run   int    // bytes of the reads since the queue was last emptied
	open  bool   // the latest read filled its buffer: the next one goes on with the same segments
	more  bool   // the latest read went on with the segments of the one before
	tardy bool   // what late said of the latest read that it was asked about
	mss   int    // as last told; 0 before
}

// read counts a read of n bytes.
func (s *segments) read(n int, full bool) {
	if !s.open && s.run > 0 {
		s.since += uint32(least(s.run, s.mss))
		s.run = 0
	}
	s.run += n
	s.more, s.open = s.open, full
	s.tardy = s.tardy && s.more
}

// late reports whether the latest read, with so many events, held segments that came at different
// times. A server that writes several events at once sends them in one segment, or in as many as
// their length needs, fewer than there are events.
func (s *segments) late(received uint32, mss, events int) bool {
	mine := int(received - s.asked - s.since)
	s.asked, s.since, s.mss = received, 0, mss
	needed := least(s.run, mss)
	s.run = 0
	s.tardy = s.tardy || mine >= 2 && (mine > needed || mine >= events)
	return s.tardy
}

// least is the smallest number of segments that hold so many bytes.
func least(bytes, mss int) int {
	if mss <= 0 {
		return 1
	}
	return max(1, (bytes+mss-1)/mss)
}

// Package probe sends a trickle of requests for ever: what users of the service feel, measured from
// outside, for services that can't tell it themselves.
//
// It is no load: a fixed rate, a small cap on what's in flight, no steps, no verdict. It doesn't fall
// silent when the service is in trouble, because a silent probe looks like a quiet night.
package probe

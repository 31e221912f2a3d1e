// Package record keeps what a run measured: the metrics page with the live steps, the ledger with
// one line per request, the manifest, and the run directory they lie in.
//
// It sends nothing and decides nothing.
package record

package main

import (
	"strings"
	"testing"
	"time"

	"firstbreach/exporter/columns"

	"github.com/google/go-cmp/cmp"
)

func TestReadVMStat(t *testing.T) {
	const text = `procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 9  0      0 18660220  50276 4913412    0    0  1081  2467  887 1778 44  9 46  0  1
 6  1      0 18660220  50276 4913412    0    0    76    76 3315 7028 89 12  0  0  0
`
	var got [][]report
	if err := readVMStat(strings.NewReader(text), func(r []report) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[1][0].values["b"] != 1 || got[1][0].values["cs"] != 7028 || len(got[1][0].values) != 17 {
		t.Errorf("got %v", got)
	}
}

func TestReadIOStat(t *testing.T) {
	const text = `Linux 6.18.44 (vm) 	12/01/26 	_x86_64_	(2 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          41.75    2.43    8.72    0.42    0.55   46.13

Device            r/s  %util
vda             77.16   2.44


avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          41.75    2.43    8.72    0.42    0.55   46.13

Device            r/s  %util

`
	var got [][]report
	if err := readIOStat(strings.NewReader(text), func(r []report) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || len(got[0]) != 1 || got[0][0].device != "vda" || len(got[1]) != 0 {
		t.Errorf("got %v", got)
	}
	if diff := cmp.Diff(map[string]float64{"r/s": 77.16, "%util": 2.44}, got[0][0].values); diff != "" {
		t.Error(diff)
	}
}

// Intervals count by their length, and a mean over operations by them; a device that isn't printed did
// nothing.
func TestMean(t *testing.T) {
	begin := time.Unix(1e9, 0)
	r := run{
		reports: [][]report{
			{{device: "a", values: map[string]float64{"r/s": 1000, "r_await": 1000}}},
			{{device: "a", values: map[string]float64{"r/s": 30, "r_await": 1}}},
			{{device: "a", values: map[string]float64{"r/s": 10, "r_await": 5}}},
			{},
		},
		at: []time.Time{begin, begin.Add(time.Second), begin.Add(3 * time.Second), begin.Add(5 * time.Second)},
	}
	if got := r.mean("a", columns.Column{Name: "r/s"}); got != 10 {
		t.Errorf("r/s: %v", got)
	}
	if got := r.mean("a", columns.Column{Name: "r_await", Weight: "r/s"}); got != 2.6 {
		t.Errorf("r_await: %v", got)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		theirs, ours float64
		same         bool
	}{{100, 101.9, true}, {100, 103, false}, {0, 1, true}, {0, 1.1, false}, {10, 10.9, true}} {
		if _, agree := judge(c.theirs, c.ours); agree != c.same {
			t.Errorf("%v and %v: agree is %v", c.theirs, c.ours, agree)
		}
	}
}

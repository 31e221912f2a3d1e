package strictyaml

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, src string) *Document {
	t.Helper()
	d, err := Parse("f.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// faults reads src with read and returns the problems as text.
func faults(t *testing.T, src string, read func(Map)) string {
	t.Helper()
	d := mustParse(t, src)
	read(d.Root().Map("a", "b", "list", "threshold", "min_duration"))
	if err := d.Err(); err != nil {
		return err.Error()
	}
	return ""
}

func TestFaults(t *testing.T) {
	text := func(m Map) { m.Get("a").Text() }
	number := func(m Map) { m.Get("a").Int() }
	for _, c := range []struct {
		name, src string
		read      func(Map)
		want      string
	}{
		{"unknown key", "treshold: 1\n", text, "f.yaml:1: treshold: unknown key (fix: did you mean threshold?)"},
		{"unknown key, other case", "Min-Duration: 1\n", text, "f.yaml:1: Min-Duration: unknown key (fix: did you mean min_duration?)"},
		{"unknown key, nothing near", "zzz: 1\n", text, "f.yaml:1: zzz: unknown key (fix: remove it; the keys here are a, b, list, threshold, min_duration)"},
		{"twice", "a: x\n# between\na: y\n", text, "f.yaml:3: a: is given twice, first on line 1 (fix: keep one of the two)"},
		{"missing", "b: x\n", func(m Map) { m.Get("a").Require("write a") }, "f.yaml:1: a: is missing (fix: write a)"},
		{"null", "a:\nb: 1\n", text, "f.yaml:1: a: has no value (fix: give it one, or remove the key)"},
		{"number for text", "a: 007\n", text, `f.yaml:1: a: must be text, not a number (fix: put it in quotes: "007")`},
		{"bool for text", "a: true\n", text, `f.yaml:1: a: must be text, not true or false (fix: put it in quotes: "true")`},
		{"list for text", "a: [x]\n", text, "f.yaml:1: a: must be text, not a list"},
		{"text for number", "a: 8x\n", number, `f.yaml:1: a: "8x" is not a whole number (fix: write 8)`},
		{"fraction for number", "a: 1.5\n", number, `f.yaml:1: a: "1.5" is not a whole number (fix: write 1)`},
		{"octal", "a: 010\n", number, `f.yaml:1: a: "010" is not a whole number (fix: write 10)`},
		{"hex", "a: 0x10\n", number, `f.yaml:1: a: "0x10" is not a whole number (fix: write 0)`},
		{"quoted number", "a: '8'\n", number, `f.yaml:1: a: "8" is not a whole number (fix: write 8 without quotes)`},
		{"huge number", "a: 99999999999999999999\n", number, `f.yaml:1: a: "99999999999999999999" is too large`},
		{"text for list", "list: x\n", func(m Map) { m.Get("list").List() }, "f.yaml:1: list: must be a list, not text (fix: write [...], or one - per entry)"},
		{"text for map", "a: x\n", func(m Map) { m.Get("a").Map("b") }, "f.yaml:1: a: must be a mapping (key: value), not text"},
		{"in a list", "list:\n- {b: 1}\n- c: 2\n  b: x\n", func(m Map) {
			for _, v := range m.Get("list").List() {
				v.Map("b").Get("b").Int()
			}
		}, "f.yaml:3: list[1].c: unknown key (fix: remove it; the keys here are b)\n" + `f.yaml:4: list[1].b: "x" is not a whole number (fix: write a number such as 8)`},
		{"one of", "a: posson\n", func(m Map) { m.Get("a").OneOf("poisson", "constant") }, `f.yaml:1: a: unknown value "posson" (fix: did you mean poisson?)`},
		{"share", "a: 1.5\n", func(m Map) { m.Get("a").Share() }, `f.yaml:1: a: "1.5" is not between 0% and 100% (fix: write a percentage such as 50%)`},
		{"not a number", "a: .inf\n", func(m Map) { m.Get("a").Float() }, `f.yaml:1: a: ".inf" is not a number (fix: write a number such as 0.2, without unit and quotes)`},
		{"no unit", "a: 10\n", func(m Map) { m.Get("a").Duration() }, `f.yaml:1: a: "10" has no unit (fix: write the unit: 10s, 10ms or 10m)`},
		{"second document", "a: x\n---\nb: y\n", text, "f.yaml:3: holds a second YAML document (fix: keep one document per file)"},
		{"no such anchor", "a: *x\n", text, `f.yaml:1: a: the alias "*x" names no anchor above it (fix: define the anchor first, or write the value out)`},
		{"anchor below", "a: *x\nb: &x 1\n", text, `f.yaml:1: a: the alias "*x" names no anchor above it (fix: define the anchor first, or write the value out)`},
		{"merge of itself", "a: &x {<<: *x}\n", func(m Map) { m.Get("a").Map() }, "f.yaml:1: a.<<: merges lead in a circle (fix: write the keys out)"},
		{"tag", "a: !!str 5\n", text, "f.yaml:1: a: YAML tags are not read here (fix: remove the tag !!str)"},
		{"line breaks in a quoted text", "a: \"x\\ny\"\n", func(m Map) { m.Get("a").OneOf("z") }, `f.yaml:1: a: unknown value "x\ny" (fix: write one of z)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, faults(t, c.src, c.read)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", "f.yaml: is empty (fix: write at least its apiVersion)"},
		{"# only a comment\n---\n", "f.yaml: is empty (fix: write at least its apiVersion)"},
		{"a: [1, 2\n", "f.yaml:1: is not valid YAML: "},
		{"a: 1\nb:\n  c: 1\n d: 2\n", "f.yaml:4: is not valid YAML: "},
		{"a: \x00\n", "f.yaml: is not text (fix: save it as UTF-8 text)"},
		{strings.Repeat("a", MaxSize+1), "f.yaml: is larger than 262144 bytes"},
	} {
		_, err := Parse("f.yaml", []byte(c.src))
		var listed *Error
		if !errors.As(err, &listed) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %s", c.src, err, c.want)
		}
	}
}

func TestValues(t *testing.T) {
	d := mustParse(t, "\ufeff# comment\r\nbase: &base {x: 1, y: 2}\r\nname: a b # c\r\nquoted: \"007\"\r\nblock: |\r\n  one\r\n  two\r\n"+
		"n: -3\r\nf: 1e3\r\nshare: 50 %\r\nlist: [1, 2]\r\nmerged: {<<: *base, y: 3}\r\nalias: *base\r\nempty: \"\"\r\nsize: 8 GiB\r\n")
	m := d.Root().Map("base", "name", "quoted", "block", "n", "f", "share", "list", "merged", "alias", "empty", "size")
	type read struct {
		Name, Quoted, Block, Empty, Unit string
		N                                int
		F, Share, Size                   float64
		List                             []int
		MergedX, MergedY, AliasY, Lines  int
	}
	var got read
	got.Name, _ = m.Get("name").Text()
	got.Quoted, _ = m.Get("quoted").Text()
	got.Block, _ = m.Get("block").NonEmpty()
	got.Empty, _ = m.Get("empty").Text()
	got.N, _ = m.Get("n").Int()
	got.F, _ = m.Get("f").Float()
	got.Share, _ = m.Get("share").Share()
	got.Size, got.Unit, _ = m.Get("size").Measure()
	for _, v := range m.Get("list").List() {
		n, _ := v.Int()
		got.List = append(got.List, n)
	}
	merged := m.Get("merged").Map("x", "y")
	got.MergedX, _ = merged.Get("x").Int()
	got.MergedY, _ = merged.Get("y").Int()
	got.AliasY, _ = m.Get("alias").Map("x", "y").Get("y").Int()
	got.Lines = m.Get("size").Line()
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	want := read{Name: "a b", Quoted: "007", Block: "one\ntwo", N: -3, F: 1000, Share: 0.5, Size: 8, Unit: "GiB",
		List: []int{1, 2}, MergedX: 1, MergedY: 3, AliasY: 2, Lines: 15}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every key says the line on which it stands, whatever stands above it.
func TestLines(t *testing.T) {
	const src = "# head\n\nk2: x\n# c\n\nk5: |\n  one\n\n  two\nk9: >-\n  folded\n  text\n\nk13: 'quoted\n  over\n\n  lines'\nk17: \"double\n  too\"\nk19: plain\n  over\n  lines\nk22:\n  - a\n  # c\n  -\n    k26: 1\n  - {k27: 1,\n     k28: 2}\nk29: [a,\n  b] # c\nk31: &x {k31: 1}\nk32: *x\nk33: 1\n"
	for name, text := range map[string]string{"unix": src, "windows": strings.ReplaceAll(src, "\n", "\r\n"), "bom": "\ufeff" + src} {
		d := mustParse(t, text)
		check := func(entries []Entry) {
			for _, e := range entries {
				before, _, _ := strings.Cut(src, e.Name+":")
				if want := strings.Count(before, "\n") + 1; e.Value.Line() != want {
					t.Errorf("%s: %s is said to be on line %d, is on %d", name, e.Name, e.Value.Line(), want)
				}
			}
		}
		entries := d.Root().Entries()
		check(entries)
		for _, e := range entries {
			switch {
			case e.Value.IsMap():
				check(e.Value.Entries())
			case e.Value.IsList():
				for _, item := range e.Value.List() {
					if item.IsMap() {
						check(item.Entries())
					}
				}
			}
		}
	}
}

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"750ms", 750 * time.Millisecond}, {"2m", 2 * time.Minute}, {"30d", 720 * time.Hour}, {"1.5s", 1500 * time.Millisecond},
		{"1h30m", 90 * time.Minute}, {" 2 m ", 2 * time.Minute}, {"1w", 168 * time.Hour}, {"250us", 250 * time.Microsecond}, {"250µs", 250 * time.Microsecond},
		{".5s", 500 * time.Millisecond}, {"0", 0}, {"0s", 0}, {"0.1s", 100 * time.Millisecond}, {"1ns", 1},
	} {
		if got, err := ParseDuration(c.text); err != nil || got != c.want {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	for _, c := range []struct{ text, fix string }{
		{"750", "write the unit: 750s, 750ms or 750m"}, {"750MS", "write 750ms"}, {"2 min", "write 2m"}, {"30 seconds", "write 30s"}, {"5 Hours", "write 5h"},
		{"", "such as 750ms"}, {"soon", "such as 750ms"}, {"-2s", "such as 750ms"}, {"1:30", "such as 750ms"}, {"0.1ns", "such as 750ms"},
		{"999999999999w", "such as 750ms"}, {"1s2", "write the unit"}, {"1e3s", "such as 750ms"}, {strings.Repeat("9", 1000) + "s", "such as 750ms"},
	} {
		if got, err := ParseDuration(c.text); err == nil {
			t.Errorf("%.40q is taken as %v", c.text, got)
		}
		if fix := durationFix(c.text); !strings.Contains(fix, c.fix) {
			t.Errorf("%.40q: fix %.80q, want %q", c.text, fix, c.fix)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"threshold", "target", "min", "max", "for", "p95", "p99"}
	for word, want := range map[string]string{
		"treshold": "threshold", "THRESHOLD": "threshold", "tagret": "target", "mix": "min", "p59": "p95", "form": "for",
		"zzz": "", "": "", "owner": "", strings.Repeat("x", 1000): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
}

// The problems of a file come by line, those of a file that it names after them.
func TestOrder(t *testing.T) {
	d := mustParse(t, "a: 1\nb: 2\n")
	d.Add(Problem{File: "other", Line: 1, Message: "x"})
	m := d.Root().Map("a", "b")
	m.Get("b").Text()
	m.Get("a").Text()
	var got []string
	for _, line := range strings.Split(d.Err().Error(), "\n") {
		got = append(got, line[:strings.Index(line, ": ")])
	}
	if diff := cmp.Diff([]string{"f.yaml:1", "f.yaml:2", "other:1"}, got); diff != "" {
		t.Error(diff)
	}
}

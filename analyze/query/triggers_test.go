package query_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"firstbreach/analyze/query"
	"firstbreach/analyze/verdict"
	"firstbreach/internal/slo"
	"firstbreach/loadgen/record"
)

var update = flag.Bool("update", false, "write docs/triggers.md anew")

// trigger is a situation in which some tool gave a wrong answer, or none, and the right answer to it.
type trigger struct {
	number string // of the list; "own" where no tool was caught in it
	source string // where it was reported
	name   string // the situation

	change func(*scene) // the one thing in which it differs from a sound run
	want   answer

	shownBy string // the test elsewhere that plays it, as folder.TestName
	tells   string // what the tool answers, where a test elsewhere plays it
}

// answer is the verdict on a run.
type answer struct {
	state      verdict.State
	at         int      // concurrency of the first breach; 0: none
	bad, total int64    // of the first breach
	says       []string // pieces of what must be said
	refused    bool     // the run isn't read at all: an error says all of it
	check      func(t *testing.T, r verdict.Result)
	and        string // what check has shown, in words
}

// triggers are all rows.
func triggers() []trigger {
	return slices.Concat(emptyTriggers(), countTriggers(), loadTriggers(), ownTriggers())
}

// stepLength is how long a step of a scene lasts, seconds.
const stepLength = 6

// scene is a sound run that held: three rounds of a baseline at 1 and a ramp of 2 and 4, a hundred quick
// requests a step. A trigger changes one thing of it.
type scene struct {
	runSpec
	options  query.Options
	more     []slo.Objective
	machine  *control               // engine and machine; nil: none is scraped
	edit     func(*sample)          // of each sample on its way into the store
	also     func(*world)           // what else is scraped
	manifest func(*record.Manifest) // what it says otherwise
	alone    bool                   // there is no manifest
	only     bool                   // the objectives of more, and no others
	write    func(*world, runSpec)  // nil: the run, once
}

func newScene() *scene {
	s := &scene{runSpec: runSpec{id: "r", classic: true, edges: []float64{0.1, 0.5, 1, 5}, threshold: 1}}
	s.ladder(100, "baseline", "ramp 2", "ramp 4")
	return s
}

// ladder replaces the steps: three rounds of these, each of so many requests.
func (s *scene) ladder(requests int, steps ...string) {
	s.steps = nil
	at := 0.25
	for round := 1; round <= 3; round++ {
		for i, text := range steps {
			x := stepSpec{round: round, step: max(1, i), conc: 1, start: at, length: stepLength, ttft: spread(requests, 0)}
			x.phase = strings.Fields(text)[0]
			_, _ = fmt.Sscanf(text, "ramp %d", &x.conc)
			s.steps = append(s.steps, x)
			at += stepLength + 2
		}
	}
}

// at changes the steps of the ramp at a concurrency.
func (s *scene) at(conc int, change func(*stepSpec)) {
	for i := range s.steps {
		if s.steps[i].phase == "ramp" && s.steps[i].conc == conc {
			change(&s.steps[i])
		}
	}
}

// slow makes so many requests of the ramp at a concurrency slow, in each round.
func (s *scene) slow(conc int, rounds ...int) {
	s.at(conc, func(x *stepSpec) { x.ttft = spread(len(x.ttft), rounds[min(x.round, len(rounds))-1]) })
}

// until is when the last step ends.
func (s *scene) until() float64 {
	last := s.steps[len(s.steps)-1]
	return last.start + last.length
}

// put writes the scene into a store, its times from now on.
func (s *scene) put(w *world) {
	w.edit = s.edit
	if s.write != nil {
		s.write(w, s.runSpec)
	} else {
		w.write(s.runSpec)
	}
	if s.machine != nil {
		s.machine.show(w, s.steps)
	}
	o := &s.options
	o.SLO = sloFile(w.t, s.more...)
	if s.only {
		o.SLO.Objectives = s.more
	}
	if o.RunID = s.id; s.alone {
		return
	}
	o.Manifest = w.manifest(s.runSpec)
	o.Manifest.Ladder = nil
	if s.manifest != nil {
		s.manifest(o.Manifest)
	}
}

// judge reads and judges the scene as analyze does.
func (s *scene) judge(t *testing.T, url string) (verdict.Result, error) {
	t.Helper()
	s.options.URL = url
	run, _, err := query.Load(t.Context(), s.options)
	if err != nil {
		return verdict.Result{}, err
	}
	return verdict.Judge(*run), nil
}

// playAll writes the scenes of the triggers into one store, one after the other, so far apart that none
// sees the engine of the one before, and returns its URL.
func playAll(t *testing.T, all []trigger) (scenes []*scene, url string) {
	t.Helper()
	const apart = 125.0
	from, length := make([]float64, len(all)), 0.0
	for i, x := range all {
		s := newScene()
		if s.id = fmt.Sprintf("r%d", i+1); x.shownBy == "" {
			x.change(s)
			from[i] = length
			length += s.until() + max(s.steps[len(s.steps)-1].tail, 2*s.every) + apart
		}
		scenes = append(scenes, s)
	}
	w := newWorld(t)
	first := w.t0 + 7200 - math.Ceil(length)
	for i, s := range scenes {
		if all[i].shownBy == "" {
			w.t0 = first + math.Floor(from[i])
			s.put(w)
		}
	}
	return scenes, w.serve()
}

// said is everything that a reader is told in words.
func said(r verdict.Result) []string {
	out := append([]string{r.Reason}, r.Notes...)
	for _, s := range r.Steps {
		for _, why := range s.Reasons {
			out = append(out, fmt.Sprintf("%s at %s: %s", s.Phase, s.Level().Words(), why))
		}
		for _, g := range s.Gauges {
			out = append(out, fmt.Sprintf("%s at %s: %s %s", s.Phase, s.Level().Words(), g.Name, crossed(g)))
		}
		for _, o := range s.Objectives {
			out = append(out, fmt.Sprintf("%s at %s: %s %s, %d of %d bad, %d more needed", s.Phase, s.Level().Words(), o.Name, o.Verdict, o.Bad(), o.Total, pointed(o.Needed)))
		}
	}
	for _, c := range r.Checks {
		switch {
		case c.Name == "query_warnings":
			out = append(out, strings.Split(c.Detail, "; ")...)
		case c.Status != verdict.Passed:
			out = append(out, c.Detail)
		}
	}
	for _, c := range r.Classes {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("class %s: %s: %s", c.Name, c.State, c.Reason), ": "))
	}
	for _, p := range r.Phases {
		out = append(out, strings.Join(append([]string{p.Phase, string(p.Held)}, p.Reasons...), ": "))
	}
	if a := r.Attribution; a != nil {
		out = append(append(out, a.Text), a.Clues...)
	}
	if rec := r.Recovery; rec != nil {
		out = append(out, fmt.Sprintf("recovery: %s, %s", rec.State, rec.Reason))
	}
	if k := r.Scaling; k != nil {
		text := "throughput: knee " + string(k.Throughput.State)
		if at := k.Throughput.At; at != nil {
			text += " at " + at.Words()
		} else {
			text += ": " + k.Throughput.Reason
		}
		out = append(out, text, "Kneedle: "+k.Kneedle.Text, "USL: "+k.USL.Text)
	}
	return out
}

func crossed(g verdict.GaugeResult) string {
	if g.Crossed == nil {
		return "has no data: " + g.Missing
	}
	return fmt.Sprintf("crossed in %d of %d rounds", g.RoundsCrossed, g.Rounds)
}

func pointed(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// Each trigger gets the right answer, and docs/triggers.md shows it as it came.
func TestTriggers(t *testing.T) {
	all := triggers()
	answers := make([]string, len(all))
	there := tests(t)
	scenes, url := playAll(t, all)
	for i, x := range all {
		t.Run(strings.ReplaceAll(x.number+" "+x.name, "/", "∕"), func(t *testing.T) {
			if x.shownBy == "" {
				answers[i] = x.answer(t, scenes[i], url)
			} else if answers[i] = x.tells; !there[x.shownBy] {
				t.Errorf("there is no test %s", x.shownBy)
			}
		})
	}
	if !t.Failed() && !partial() {
		compareTriggers(t, all, answers)
	}
}

// partial reports whether only some rows were asked for.
func partial() bool {
	return strings.Contains(flag.Lookup("test.run").Value.String(), "/")
}

// answer judges the trigger's scene, and returns the answer in words.
func (x trigger) answer(t *testing.T, s *scene, url string) string {
	t.Helper()
	r, err := s.judge(t, url)
	if (err != nil) != x.want.refused {
		t.Fatalf("error %v", err)
	}
	var all []string
	var found string
	if err != nil {
		all, found = []string{err.Error()}, "refused"
	} else {
		all, found = said(r), x.want.compare(t, r)
	}
	quoted := map[string]bool{}
	for _, piece := range x.want.says {
		i := slices.IndexFunc(all, func(text string) bool { return strings.Contains(text, piece) })
		if i < 0 {
			t.Fatalf("nowhere it says %q:\n%s", piece, strings.Join(all, "\n"))
		}
		if text := short(all[i], piece); !quoted[text] {
			quoted[text] = true
			found += "; “" + text + "”"
		}
	}
	return found
}

// compare holds the verdict against the right one, and returns it in words.
func (a answer) compare(t *testing.T, r verdict.Result) string {
	t.Helper()
	found := "`" + string(r.State) + "`"
	if r.State != a.state {
		t.Errorf("%s (%s), want %s:\n%s", r.State, r.Reason, a.state, strings.Join(said(r), "\n"))
	}
	at := 0
	if b := r.FirstBreach; b != nil {
		at = b.Concurrency
		found += fmt.Sprintf(" at concurrency %d: %d of %d missed %s", at, b.Bad, b.Total, b.Objective)
		if b.Bad != a.bad || b.Total != a.total {
			t.Errorf("%d of %d bad, want %d of %d", b.Bad, b.Total, a.bad, a.total)
		}
	}
	if at != a.at {
		t.Errorf("first breach at %d, want %d", at, a.at)
	}
	if a.check != nil {
		a.check(t, r)
		found += "; " + a.and
	}
	return found
}

// short is the part of a text around a piece of it, without what differs each time.
func short(text, piece string) string {
	for differs, is := range map[string]string{
		`http://127\.0\.0\.1:\d+`: "http://127.0.0.1:9090", `\d{4}-\d\d-\d\dT[\d:.]+Z`: "…",
		`in the last \w+`: "in the last 2h", `clocks differ by \d+ s`: "clocks differ by 3600 s",
	} {
		text = regexp.MustCompile(differs).ReplaceAllString(text, is)
	}
	const most = 240
	if len([]rune(text)) <= most {
		return text
	}
	i := max(0, len([]rune(text[:strings.Index(text, piece)]))-most/4)
	cut := []rune(text)[i:]
	if len(cut) > most {
		cut = append(cut[:most], '…')
	}
	if i > 0 {
		cut = append([]rune{'…'}, cut...)
	}
	return string(cut)
}

// tests are the names of all test functions of the repository, as folder.TestName.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				found[filepath.ToSlash(dir)+"."+f.Name.Name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// compareTriggers compares docs/triggers.md with the answers, or writes it.
func compareTriggers(t *testing.T, all []trigger, answers []string) {
	t.Helper()
	var page bytes.Buffer
	page.WriteString(triggersIntro)
	for i, x := range all {
		test := x.shownBy
		if test == "" {
			test = "analyze/query.TestTriggers"
		}
		cell := strings.NewReplacer("|", `\|`, "\n", " ")
		fmt.Fprintf(&page, "| %s | %s | %s | %s | `%s` |\n", x.number, x.source, cell.Replace(x.name), cell.Replace(answers[i]), test)
	}
	path := filepath.Join("..", "..", "docs", "triggers.md")
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(got), page.String()); d != "" {
		t.Errorf("docs/triggers.md is stale; look at the difference, then run this test with -update (-page +answers):\n%s", d)
	}
}

const triggersIntro = `# Where other tools were caught, and what this one answers

<!-- Written by: go test ./analyze/query -run TestTriggers -update -->

Each row is a situation in which a tool that judges measurements gave a wrong answer, or none; the issue is named.
A sound run that held (three rounds of a baseline and of concurrency 2 and 4, a hundred requests a step, objectives on TTFT at
1 s, success and timeouts) is written into the embedded Prometheus with one thing changed, and read and judged the way every run
is. The answer is what came of it, quoted. Where another test plays the situation, it is named. The rules are in [verdict.md](verdict.md).

| | from | situation | answer | test |
|---|---|---|---|---|
`

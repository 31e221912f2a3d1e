package compare

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"firstbreach/loadgen/plan"
)

// Difference is a condition that the two runs don't share.
type Difference struct {
	Key      string `json:"key"`
	A        string `json:"a"`
	B        string `json:"b"`
	Intended bool   `json:"intended"` // declared as what the comparison is about
}

const notRecorded = "not recorded"

// Differences are the conditions that a and b don't share, by key. intended names those that the comparison is
// about: a key, or the start of one up to a dot.
func Differences(a, b Run, intended []string) []Difference {
	left, right := conditions(a), conditions(b)
	keys := maps.Clone(left)
	maps.Copy(keys, right)
	out := []Difference{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		va, inA := left[key]
		vb, inB := right[key]
		if va == vb && inA == inB {
			continue
		}
		if !inA {
			va = notRecorded
		}
		if !inB {
			vb = notRecorded
		}
		out = append(out, Difference{Key: key, A: va, B: vb, Intended: covers(intended, key)})
	}
	return out
}

func covers(intended []string, key string) bool {
	for _, name := range intended {
		if key == name || strings.HasPrefix(key, name+".") {
			return true
		}
	}
	return false
}

// keys are those of the differences that were declared, or of those that weren't.
func keys(ds []Difference, intended bool) []string {
	var out []string
	for _, d := range ds {
		if d.Intended == intended {
			out = append(out, d.Key)
		}
	}
	return out
}

// conditions are everything that has to be the same for two runs to be compared: what was served, what was
// asked of it, what was promised, and what measured it.
func conditions(r Run) map[string]string {
	out := map[string]string{"client_version": r.Report.Version, "service": r.Report.Service}
	for key, value := range r.Report.Conditions {
		out[key] = value
	}
	if text, ok := out["url"]; ok {
		out["url"] = place(text)
	}
	if r.Report.ScrapeS != nil {
		out["scrape_interval"] = strconv.FormatFloat(*r.Report.ScrapeS, 'g', -1, 64) + " s"
	}
	for _, o := range r.Report.Objectives {
		out["slo."+o.Name] = o.Text
	}
	if r.Manifest != nil {
		out["client_version"] = r.Manifest.Version
		out["prompts_sha256"] = r.Manifest.Prompts
	}
	planConditions(r, out)
	return out
}

// planConditions adds the keys of the plan. Where the target is, is a condition of its own; how many rounds
// were run changes how sure a comparison is, not what is compared.
func planConditions(r Run, out map[string]string) {
	var tree map[string]any
	if r.Plan == "" || yaml.Unmarshal([]byte(r.Plan), &tree) != nil {
		if r.Manifest != nil {
			out["plan_sha256"] = r.Manifest.PlanSHA256
		}
		return
	}
	delete(tree, "rounds")
	delete(tree, "target")
	flatten("plan", tree, out)
	// A default is the same written out or not. A plan that this release can't read counts as it is written.
	if effective, err := plan.Effective([]byte(r.Plan)); err == nil {
		for key, value := range effective {
			out["plan."+key] = value
		}
	}
}

func flatten(prefix string, value any, out map[string]string) {
	if m, ok := value.(map[string]any); ok {
		for key, v := range m {
			flatten(prefix+"."+key, v, out)
		}
		return
	}
	out[prefix] = fmt.Sprint(value)
}

// place is a target's address without the port of a loopback address: a test server gets another one each time.
func place(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	if host := u.Hostname(); host == "127.0.0.1" || host == "::1" || host == "localhost" {
		u.Host = host
	}
	return u.String()
}

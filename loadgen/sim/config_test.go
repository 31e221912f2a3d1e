package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, args ...string) (Config, error) {
	t.Helper()
	app := kingpin.New("test", "")
	app.Terminate(func(int) {})
	c := Flags(app.Command("sim", ""))
	_, err := app.Parse(append([]string{"sim"}, args...))
	return *c, err
}

func TestFlagsDefaultToDefault(t *testing.T) {
	got, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestArgsGiveTheConfigBack(t *testing.T) {
	all := Config{
		Model: "m", Slots: 7, PrefillTime: 3 * ms, PrefillRate: 123.5, StepBase: 4 * ms, StepPerSequence: 5 * time.Microsecond,
		KVTokens: 800, MaxRequests: 9, Reject: RejectInBand, RejectDelay: 6 * ms, RetryAfter: 1500 * ms, DefaultTokens: 3,
		Jitter: 0.25, Seed: 1 << 63, ErrorShare: 0.125, ErrorAbove: 5, ErrorStatus: 200, ErrorTokens: 2, LoadTime: time.Second,
		Headers: HeadersFirstToken, Stamp: true,
		Faults: []Fault{
			{Kind: FaultStall, At: 20 * time.Second, For: 5 * time.Second},
			{Kind: FaultReset, Request: 17, Count: 2, Tokens: 3},
			{Kind: FaultCrash, Request: 40, Down: 2 * time.Second, Load: 3 * time.Second},
			{Kind: FaultTruncate},
		},
	}
	for name, want := range map[string]Config{"all": all, "default": Default(), "demo": Demo()} {
		t.Run(name, func(t *testing.T) {
			if err := want.Validate(); err != nil {
				t.Fatal(err)
			}
			got, err := parse(t, want.Args()...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateNamesEveryFlag(t *testing.T) {
	bad := Config{
		Slots: 0, PrefillTime: -1, PrefillRate: -1, KVTokens: -1, MaxRequests: -1, Reject: "x", RejectDelay: -1, RetryAfter: -1,
		Jitter: -1, ErrorShare: 2, ErrorAbove: -1, ErrorStatus: 404, ErrorTokens: -1, LoadTime: -1, Headers: "x",
		Faults: []Fault{{Kind: "x"}},
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, flag := range []string{
		"--model", "--slots", "--prefill-time", "--prefill-rate", "--step-base", "--kv-tokens", "--max-requests", "--reject=", "--reject-delay",
		"--retry-after", "--default-tokens", "--jitter", "--error-share", "--error-above", "--error-status", "--error-tokens", "--load-time", "--headers", "--fault",
	} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not named in:\n%v", flag, err)
		}
	}
}

func TestParseFaultErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "unknown kind",
		"explode":                     "unknown kind",
		"stall":                       "needs for=",
		"stall:for":                   "not key=value",
		"stall:for=soon":              "not a duration",
		"stall:for=5s,when=2s":        "unknown setting",
		"stall:for=5s,tokens=1":       "single requests",
		"reset:request=two":           "not a whole number",
		"reset:at=1s,request=2":       "not both",
		"reset:tokens=-1":             "below 0",
		"reset:down=2s":               "belong to a crash",
		"crash:at=30s,for=2s":         "belongs to a stall",
		"crash:down=2s,load=3s,for=1": "not a duration",
	} {
		if _, err := ParseFault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

// The page about the simulator lists every flag with its default.
func TestFlagsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulator.md"))
	if err != nil {
		t.Fatal(err)
	}
	app := kingpin.New("test", "")
	cmd := app.Command("sim", "")
	Flags(cmd)
	for _, f := range cmd.Model().Flags {
		row := "| `--" + f.Name + "` | "
		if len(f.Default) > 0 {
			row += "`" + f.Default[0] + "` |"
		}
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/simulator.md has no row %q", row)
		}
	}
}

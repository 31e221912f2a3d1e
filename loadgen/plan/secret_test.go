package plan

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretValue(t *testing.T) {
	dir := t.TempDir()
	path := func(name, text string) Secret {
		write(t, filepath.Join(dir, name), text)
		return Secret{File: filepath.Join(dir, name)}
	}
	t.Setenv("FB_TEST_KEY", "  hunter2\n")
	t.Setenv("FB_TEST_EMPTY", " ")
	for _, c := range []struct {
		secret      Secret
		want, wrong string
	}{
		{Secret{}, "", ""},
		{Secret{Env: "FB_TEST_KEY"}, "hunter2", ""},
		{path("key", "hunter2\r\n"), "hunter2", ""},
		{Secret{Env: "FB_TEST_EMPTY"}, "", "environment variable FB_TEST_EMPTY is empty"},
		{Secret{Env: "FB_TEST_UNSET"}, "", "environment variable FB_TEST_UNSET is empty"},
		{path("empty", "\n"), "", "empty is empty"},
		{path("two", "hunter2\nhunter3\n"), "", "two holds more than one line"},
		{path("large", strings.Repeat("x", maxSecret+1)), "", "is too large for a key"},
		{Secret{File: filepath.Join(dir, "none")}, "", "none can't be read: no such file"},
	} {
		got, err := c.secret.Value()
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%#v: %q, %v; want %q, %s", c.secret, got, err, c.want, c.wrong)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("the secret is in the error: %v", err)
		}
	}
}

// However a plan is printed, what stands in its secret isn't shown: it may be the key itself, pasted
// where its name belongs.
func TestSecretIsNeverPrinted(t *testing.T) {
	p := Plan{Target: Target{APIKey: Secret{Env: "hunter2"}}}
	text := fmt.Sprintf("%v %+v %#v %s", p, p, p, p.Target.APIKey)
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if text += string(b); strings.Contains(text, "hunter2") || !strings.Contains(text, "redacted (env)") {
		t.Error(text)
	}
}

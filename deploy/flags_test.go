package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// binaries is the folder of our programs, built once for all tests.
func binaries(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds binaries")
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var builtIn string // the folder, once there is one

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "firstbreach-deploy-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	if out, err := exec.Command("go", "build", "-o", dir, "../exporter", "../loadgen", "../analyze").CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(builtIn)
	os.Exit(status)
}

// TestFlagsExist: every flag that compose.yaml passes to a program of ours is one that it has.
func TestFlagsExist(t *testing.T) {
	dir := binaries(t)
	checked := 0
	for name, s := range project(t).Services {
		if s.Build != nil {
			checked += checkFlags(t, dir, name, s.Command)
		}
	}
	if checked < 10 {
		t.Errorf("only %d flags were checked", checked)
	}
}

// checkFlags holds the flags of a command line to the program's help; it returns how many there were.
func checkFlags(t *testing.T, dir, name string, command []string) int {
	t.Helper()
	words := []string{filepath.Join(dir, command[0])}
	var flags []string
	for _, arg := range command[1:] {
		if strings.HasPrefix(arg, "--") {
			flag, _, _ := strings.Cut(arg, "=")
			flags = append(flags, strings.TrimPrefix(flag, "--"))
		} else if len(flags) == 0 {
			words = append(words, arg)
		}
	}
	help, err := exec.Command(words[0], append(words[1:], "--help")...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %s: %v\n%s", name, strings.Join(command, " "), err, help)
		return 0
	}
	for _, flag := range flags {
		if !regexp.MustCompile(`(?m)--(\[no-\])?` + regexp.QuoteMeta(flag) + `([=\s]|$)`).Match(help) {
			t.Errorf("%s passes --%s, which %s hasn't", name, flag, command[0])
		}
	}
	return len(flags)
}

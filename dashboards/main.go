// Command dashboards generates Grafana dashboards from SLO files. It only reads flags; the work is in
// the packages beside it.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"firstbreach/dashboards/board"
	"firstbreach/dashboards/boards"
	"firstbreach/internal/generated"
	"firstbreach/internal/release"
	"firstbreach/internal/slo"
	"firstbreach/internal/strictyaml"
)

//go:generate go run . --slo ../alerts/slo.yaml --out .

func main() {
	generated.CollectSeldom()
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	slos  []string
	out   string
	check bool
}

func flags(c *config, stdout, stderr io.Writer) *kingpin.Application {
	app := kingpin.New("dashboards", "Generates Grafana dashboards from SLO files: objectives in production, load tests, GPU hosts.")
	app.HelpFlag.Short('h')
	app.UsageWriter(stdout).ErrorWriter(stderr)
	app.Version("dashboards " + release.Version())
	app.Flag("slo", "SLO file; repeat it for several services.").Default("alerts/slo.yaml").PlaceHolder("FILE").StringsVar(&c.slos)
	app.Flag("out", "Folder for the dashboards.").Default("dashboards").PlaceHolder("DIR").StringVar(&c.out)
	app.Flag("check", "Write nothing; fail when the dashboards that are there are not what would be written.").BoolVar(&c.check)
	return app
}

// command is the whole program; it returns its exit status.
func command(args []string, stdout, stderr io.Writer) int {
	var c config
	app := flags(&c, stdout, stderr)
	ended := -1
	app.Terminate(func(status int) { ended = status }) // --help and --version
	_, err := app.Parse(args)
	if ended >= 0 {
		return ended
	}
	if err != nil {
		fmt.Fprintf(stderr, "dashboards: %v; see dashboards --help\n", err)
		return generated.ExitUsage
	}
	files, err := c.generate()
	program := generated.Program{Name: "dashboards", Dir: c.out, Check: c.check, Ours: ours}
	return program.Finish(files, err, stdout, stderr)
}

// generate makes every dashboard in memory: either all of them can be written, or none is.
func (c *config) generate() ([]generated.File, error) {
	slos, err := slo.LoadAll(c.slos)
	if err != nil {
		return nil, err
	}
	all := []board.Board{boards.Host()}
	var errs []error
	for _, f := range slos {
		service, errService := boards.Service(f)
		test, errTest := boards.LoadTest(f)
		errs = append(errs, errService, errTest)
		all = append(all, service, test)
	}
	if err := strictyaml.Join(errs...); err != nil {
		return nil, err
	}
	return print(all)
}

func print(all []board.Board) ([]generated.File, error) {
	files := make([]generated.File, len(all))
	for i, b := range all {
		text, err := b.JSON()
		if err != nil {
			return nil, err
		}
		files[i] = generated.File{Name: strings.TrimPrefix(b.UID, "firstbreach-") + ".json", Content: text}
	}
	return files, nil
}

// ours reports whether a file was generated before: by its uid and tag.
func ours(name string, content []byte) bool {
	return strings.HasSuffix(name, ".json") && bytes.Contains(content, []byte(`"uid": "firstbreach-`)) && bytes.Contains(content, []byte(`"`+board.Tag+`"`))
}

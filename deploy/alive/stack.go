package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// stack is the servers of compose.yaml as processes of this machine. Each has the files that compose.yaml
// mounts into it, at the same paths below a folder of its own.
type stack struct {
	root, dir string
	files     map[string]map[string]string // service → path in the container → path here
	ports     map[string]string            // service → host:port here
	running   map[string]*process
	died      context.CancelCauseFunc
	hook      *webhook
}

// process is a started server.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	wanted atomic.Bool // its end
}

// inCompose are the services' ports in compose.yaml.
var inCompose = map[string]string{
	"prometheus": "9090", "alertmanager": "9093", "exporter": "10510", "probe": "10511",
	"reports": "10512", "sim": "10513", "loadtest": "10511",
}

// newStack finds the repository, takes a port for each service and copies what compose.yaml mounts.
func newStack(dir string, died context.CancelCauseFunc) (*stack, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	s := &stack{
		root: filepath.Dir(strings.TrimSpace(string(mod))), dir: dir, died: died,
		files: map[string]map[string]string{}, ports: map[string]string{}, running: map[string]*process{},
	}
	for name := range inCompose {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // all are held until each has a port of its own
		s.ports[name] = l.Addr().String()
	}
	return s, s.copyMounts()
}

// copyMounts copies what compose.yaml mounts. The Alertmanager's files and the rules stay byte for byte
// what is shipped; in those that name other services the addresses and paths become those here.
func (s *stack) copyMounts() error {
	p, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: s.root, Environment: types.Mapping{},
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(s.root, "compose.yaml")}},
	}, loader.WithProfiles([]string{"*"}))
	if err != nil {
		return err
	}
	for _, name := range []string{"prometheus", "alertmanager", "probe", "reports"} {
		s.files[name] = map[string]string{}
		for _, v := range p.Services[name].Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			text, err := os.ReadFile(v.Source)
			if err != nil {
				return err
			}
			switch filepath.Base(v.Source) {
			case "prometheus.yml", "plan.yaml", "serve.yaml":
				text = s.here(name, text)
			}
			to := filepath.Join(s.dir, name, v.Target)
			s.files[name][v.Target] = to
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknown are the lines of prometheus.yml with keys that Prometheus 2.42 doesn't have.
var unknown = regexp.MustCompile(`(?m)^\s*(scrape_native_histograms|always_scrape_classic_histograms):.*\n`)

// here is a file with the addresses and folders that its service has on this machine, and without keys
// that Prometheus 2.42 would refuse. All else stays.
func (s *stack) here(service string, text []byte) []byte {
	pairs := []string{
		"127.0.0.1:9090", s.ports["prometheus"], // itself
		"/etc/prometheus/", filepath.Join(s.dir, service, "etc/prometheus") + "/",
		"reports: /reports", "reports: " + filepath.Join(s.dir, service, "reports"),
	}
	for name, port := range inCompose {
		pairs = append(pairs, name+":"+port, s.ports[name])
	}
	return unknown.ReplaceAll([]byte(strings.NewReplacer(pairs...).Replace(string(text))), nil)
}

func (s *stack) file(service, target string) string { return s.files[service][target] }

func (s *stack) url(service string) string { return "http://" + s.ports[service] }

// start builds our programs and starts everything but the probe's requests.
func (s *stack) start(ctx context.Context) (err error) {
	if s.hook, err = listenHook(s.file("alertmanager", "/etc/alertmanager/alertmanager.yml")); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.dir+"/", "./exporter", "./loadgen", "./analyze")
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "reports", "reports"), 0o755); err != nil {
		return err
	}
	alertmanager, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		alertmanager = "alertmanager"
	}
	listen := func(service string) string { return "--web.listen-address=" + s.ports[service] }
	return errors.Join(
		// Clients beyond 8 are turned away, a tenth of a second later: without that pause they would do
		// nothing but ask again.
		s.run("sim", s.ours("loadgen"), "sim", listen("sim"), "--max-requests=8", "--reject-delay=100ms"),
		s.run("exporter", s.ours("exporter"), listen("exporter")),
		s.probe(ctx, "1000h"),
		s.run("reports", s.ours("analyze"), "serve", "--config="+s.file("reports", "/etc/firstbreach/serve.yaml"), listen("reports")),
		s.run("alertmanager", alertmanager, "--config.file="+s.file("alertmanager", "/etc/alertmanager/alertmanager.yml"),
			"--storage.path="+filepath.Join(s.dir, "alertmanager", "data"), "--cluster.listen-address=", listen("alertmanager")),
		s.run("prometheus", "prometheus", "--config.file="+s.file("prometheus", "/etc/prometheus/prometheus.yml"),
			"--storage.tsdb.path="+filepath.Join(s.dir, "prometheus", "data"), listen("prometheus")),
	)
}

func (s *stack) ours(program string) string { return filepath.Join(s.dir, program) }

func (s *stack) probe(ctx context.Context, every string) error {
	err := s.run("probe", s.ours("loadgen"), "probe", "--plan="+s.file("probe", "/etc/firstbreach/plan.yaml"),
		"--slo="+s.file("probe", "/etc/firstbreach/slo.yaml"), "--every="+every, "--web.listen-address="+s.ports["probe"])
	if err != nil {
		return err
	}
	return wait(ctx, 20*time.Second, "the probe's page", func(ctx context.Context) (bool, error) {
		_, err := get(ctx, s.url("probe")+"/metrics")
		return err == nil, nil
	})
}

// restartProbe lets the probe, which waited so far, ask.
func (s *stack) restartProbe(ctx context.Context) error {
	s.stop("probe")
	return s.probe(ctx, "500ms")
}

// run starts a server. Its end, unless it is asked for, ends everything.
func (s *stack) run(name, program string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return err
	}
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, s.dir
	if err := p.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w (Debian's packages are prometheus and prometheus-alertmanager)", name, err), log.Close())
	}
	s.running[name] = p
	go func() {
		defer close(p.ended)
		err := p.cmd.Wait()
		_ = log.Close()
		if !p.wanted.Load() {
			text, _ := os.ReadFile(log.Name())
			s.died(fmt.Errorf("%s ended: %w\n%s", name, errors.Join(err, errors.New("it should go on")), text[max(0, len(text)-2000):]))
		}
	}()
	return nil
}

// stop kills a server and waits until it is gone.
func (s *stack) stop(name string) {
	p := s.running[name]
	p.wanted.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // gone already: as wanted
	<-p.ended
	delete(s.running, name)
}

func (s *stack) stopAll() {
	for name := range s.running {
		s.stop(name)
	}
	if s.hook != nil {
		_ = s.hook.server.Close()
	}
}

package deploy

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	alertmanager "github.com/prometheus/alertmanager/config"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
)

// project is compose.yaml with every profile, and the files given laid over it.
func project(t *testing.T, over ...string) *types.Project {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	details := types.ConfigDetails{WorkingDir: root, Environment: types.Mapping{}}
	for _, name := range append([]string{"compose.yaml"}, over...) {
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: filepath.Join(root, name)})
	}
	p, err := loader.LoadWithContext(context.Background(), details, loader.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestComposeIsSafe: ports on the loopback only, images pinned, a health check for what runs on, and
// every file that is mounted there.
func TestComposeIsSafe(t *testing.T) {
	p := project(t)
	for _, want := range []string{"prometheus", "alertmanager", "grafana", "exporter", "probe", "reports", "sim", "loadtest", "report"} {
		if _, err := p.GetService(want); err != nil {
			t.Error(err)
		}
	}
	for name, s := range p.Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open on %q, not on the loopback", name, port.Published, port.HostIP)
			}
		}
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %s has no exact version", name, s.Image)
		}
		if s.Restart != "no" && s.HealthCheck == nil {
			t.Errorf("%s runs on and has no health check", name)
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s mounts what isn't there: %v", name, err)
			}
			if !v.ReadOnly {
				t.Errorf("%s could write to %s", name, v.Source)
			}
		}
		for key := range s.Environment {
			if secret.MatchString(key) {
				t.Errorf("%s: %s stands in compose.yaml; a secret belongs in a file", name, key)
			}
		}
	}
}

var (
	pinned = regexp.MustCompile(`^[a-z0-9./-]+:v?\d+\.\d+\.\d+$`)
	secret = regexp.MustCompile(`(?i)PASSWORD|TOKEN|SECRET|API_?KEY`)
)

// TestGPUOverlay: only the exporter changes, to the variant with cgo and the machine's GPUs.
func TestGPUOverlay(t *testing.T) {
	plain, gpu := project(t), project(t, "deploy/compose.gpu.yaml")
	if len(plain.Services) != len(gpu.Services) {
		t.Errorf("%d services become %d", len(plain.Services), len(gpu.Services))
	}
	e := gpu.Services["exporter"]
	if e.Build.Target != "exporter-gpu" || e.Deploy == nil || len(e.Deploy.Resources.Reservations.Devices) != 1 {
		t.Errorf("the exporter is built as %s, with %+v", e.Build.Target, e.Deploy)
	}
	if !slices.Equal(e.Command, plain.Services["exporter"].Command) {
		t.Errorf("the exporter's command becomes %q", e.Command)
	}
}

// TestDockerfile: every target that is built is a stage, and base images are pinned.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+) AS (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if !stages[m[1]] && !regexp.MustCompile(`:(v?\d+\.\d+\.\d+|[a-z]+-\d{8})`).MatchString(m[1]) {
			t.Errorf("base image %s has no exact version", m[1])
		}
		stages[m[2]] = true
	}
	for _, p := range []*types.Project{project(t), project(t, "deploy/compose.gpu.yaml")} {
		for name, s := range p.Services {
			if s.Build != nil && !stages[s.Build.Target] {
				t.Errorf("%s is built as %s, which the Dockerfile hasn't", name, s.Build.Target)
			}
		}
	}
}

// TestPrometheusConfig: unchanged, in the Prometheus that go.mod pins; its targets are services of
// compose.yaml at ports that these serve, and it drops no classic buckets.
func TestPrometheusConfig(t *testing.T) {
	c, err := config.LoadFile("prometheus.yml", false, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	p := project(t)
	jobs := map[string]bool{}
	for _, s := range c.ScrapeConfigs {
		jobs[s.JobName] = true
		if s.AlwaysScrapeClassicHistograms == nil || !*s.AlwaysScrapeClassicHistograms {
			t.Errorf("job %s drops classic buckets", s.JobName)
		}
	}
	for _, want := range []string{"probe", "exporter", "engine", "loadgen"} {
		if !jobs[want] {
			t.Errorf("nothing scrapes job %s", want)
		}
	}
	text, err := os.ReadFile("prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"([a-z]+):(\d+)"`).FindAllStringSubmatch(string(text), -1) {
		s, err := p.GetService(m[1])
		if err != nil {
			t.Error(err)
			continue
		}
		if len(s.Ports) > 0 && !slices.ContainsFunc(s.Ports, func(c types.ServicePortConfig) bool { return c.Published == m[2] }) {
			t.Errorf("%s has no port %s", m[1], m[2])
		}
	}
}

// TestAlertmanagerConfig: what compose.yaml mounts is read, and the base's receiver is used.
func TestAlertmanagerConfig(t *testing.T) {
	c, err := alertmanager.LoadFile("alerts/alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Route.Routes) != 1 || c.Route.Routes[0].Receiver != "oncall" {
		t.Errorf("the owner's alerts don't go to oncall: %+v", c.Route.Routes)
	}
}

// mounted are the files of compose.yaml by their path in the container.
func mounted(s types.ServiceConfig) map[string]string {
	files := map[string]string{}
	for _, v := range s.Volumes {
		files[v.Target] = v.Source
	}
	return files
}

// TestMountedPaths: a file that a flag names is one that is mounted there.
func TestMountedPaths(t *testing.T) {
	for name, s := range project(t).Services {
		files := mounted(s)
		for _, arg := range s.Command {
			_, path, ok := strings.Cut(arg, "=/")
			if !ok {
				continue
			}
			if path = "/" + path; files[path] == "" && files[filepath.Dir(path)] == "" {
				t.Errorf("%s: %s: nothing is mounted there", name, arg)
			}
		}
	}
}

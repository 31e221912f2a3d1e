package serve

import (
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"firstbreach/analyze/window"
)

//go:embed index.html.tmpl
var indexText string //nolint:gochecknoglobals // an embedded file

// shown is how many reports the index lists of a service.
const shown = 30

// Handler serves the index, the reports and the metrics.
func (s *Server) Handler() (http.Handler, error) {
	index, err := template.New("index").Funcs(template.FuncMap{"path": reportPath, "word": func(v window.State) string { return strings.ReplaceAll(string(v), "_", " ") }}).Parse(indexText)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		c, list := s.current()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		if err := index.Execute(w, indexPage(c, list)); err != nil {
			s.Logger.Debug("the index can't be sent", "err", err)
		}
	})
	mux.HandleFunc("GET /services/{service}/latest", func(w http.ResponseWriter, r *http.Request) {
		_, list := s.current()
		report, ok := latest(list, r.PathValue("service"))
		if !ok {
			http.Error(w, fmt.Sprintf("There is no report of %q yet.", r.PathValue("service")), http.StatusNotFound)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		http.Redirect(w, r, reportPath(report), http.StatusFound)
	})
	mux.HandleFunc("GET /reports/{service}/{report}/{file}", func(w http.ResponseWriter, r *http.Request) {
		service, report, file := r.PathValue("service"), r.PathValue("report"), r.PathValue("file")
		if !safe(service) || !safe(report) || !slices.Contains([]string{window.HTMLFile, window.MarkdownFile, window.JSONFile}, file) {
			http.NotFound(w, r)
			return
		}
		c, _ := s.current()
		http.ServeFile(w, r, filepath.Join(c.Reports, service, report, file))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 40}))
	ok := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") }
	mux.HandleFunc("GET /-/healthy", ok)
	mux.HandleFunc("GET /-/ready", ok)
	reload := func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Reload(); err != nil {
			s.Logger.Error("the configuration can't be used; the old one stays", "err", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "OK")
	}
	mux.HandleFunc("POST /-/reload", reload)
	mux.HandleFunc("PUT /-/reload", reload)
	return mux, nil
}

type serviceReports struct {
	Service string
	Latest  *Report
	Older   []Report
}

// indexPage groups the reports by service: those of the configuration first, then others that are
// still kept.
func indexPage(c *Config, list []Report) []serviceReports {
	var out []serviceReports
	at := map[string]int{}
	for _, f := range c.SLO {
		at[f.Service] = len(out)
		out = append(out, serviceReports{Service: f.Service})
	}
	for _, r := range list {
		i, ok := at[r.Service]
		if !ok {
			i = len(out)
			at[r.Service] = i
			out = append(out, serviceReports{Service: r.Service})
		}
		switch o := &out[i]; {
		case o.Latest == nil:
			o.Latest = &r
		case len(o.Older) < shown:
			o.Older = append(o.Older, r)
		}
	}
	return out
}

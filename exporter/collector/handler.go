package collector

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapeTimeoutHeader is how long the scraper waits, in seconds.
const scrapeTimeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// DefaultOffset is the part of a scraper's time that is left for sending the page.
const DefaultOffset = 500 * time.Millisecond

// HandlerOptions configure the metrics page.
type HandlerOptions struct {
	// Also is gathered into the same page: the exporter's own metrics.
	Also        prometheus.Gatherer
	MaxRequests int // in flight at once, further ones are answered 503; no limit when 0
	// Offset is the part of the scraper's time that is left for sending the page, a fifth of it at
	// most; DefaultOffset when zero, nothing when negative.
	Offset time.Duration
	Logger *slog.Logger
}

// Handler serves the set. A scrape that says how long it has gets its page in that time, without
// what could not be read by then. One that names collectors, as collect[] or exclude[], gets those.
func Handler(s *Set, o HandlerOptions) http.Handler {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		include, exclude := query["collect[]"], query["exclude[]"]
		if include != nil && exclude != nil {
			http.Error(w, "collect[] and exclude[]: give one of them", http.StatusBadRequest)
			return
		}
		only, err := s.Only(include, exclude)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		registry := prometheus.NewRegistry()
		if err := registry.Register(only.Within(timeout(r, o.Offset, s.timeout))); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		gatherers := prometheus.Gatherers{registry}
		if o.Also != nil {
			gatherers = append(gatherers, o.Also)
		}
		promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
			// A series that can't be exported costs itself, not the page.
			ErrorHandling: promhttp.ContinueOnError,
		}).ServeHTTP(w, r)
	}
	return limit(http.HandlerFunc(serve), o.MaxRequests)
}

// timeout is what the scraper gives, less a part of it for sending the page; otherwise the time when
// it doesn't say.
func timeout(r *http.Request, offset, otherwise time.Duration) time.Duration {
	if offset == 0 {
		offset = DefaultOffset
	}
	seconds, err := strconv.ParseFloat(r.Header.Get(scrapeTimeoutHeader), 64)
	if err != nil || !(seconds > 0) {
		return otherwise
	}
	d := time.Duration(min(seconds, 3600) * float64(time.Second))
	return d - min(d/5, max(offset, 0))
}

// limit answers 503 when n requests are in flight already.
func limit(h http.Handler, n int) http.Handler {
	if n <= 0 {
		return h
	}
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			h.ServeHTTP(w, r)
		default:
			http.Error(w, "Too many scrapes at once: raise --web.max-requests if that many are meant.", http.StatusServiceUnavailable)
		}
	})
}

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/fileutil"
	"github.com/prometheus/prometheus/util/compression"
	"github.com/prometheus/prometheus/util/features"
)

// The query limits are Prometheus's defaults.
const (
	maxQueries     = 20
	maxSamples     = 50_000_000
	queryTimeout   = 2 * time.Minute
	lookbackDelta  = 5 * time.Minute
	maxRuleQueries = 4
)

const (
	// startTimeout bounds the wait for the scrape loops to be set up.
	startTimeout = 10 * time.Second
	// drainTimeout bounds how long Close lets running requests go on.
	drainTimeout = 3 * time.Second
)

// Store is a running Prometheus. Its methods may be called from several goroutines.
type Store struct {
	opts    Options
	cfg     *config.Config
	logger  *slog.Logger
	started time.Time

	registry *prometheus.Registry
	features features.Collector
	parser   parser.Parser
	stats    *tsdb.DBStats
	db       *tsdb.DB
	engine   *promql.Engine
	scraper  *scrape.Manager
	rules    *rules.Manager

	listener net.Listener
	server   *http.Server
	cancel   context.CancelFunc // ends the requests that are still running
	client   api.Client         // of our own HTTP API
	idle     func()             // closes the client's connections
	running  sync.WaitGroup     // the scrape manager, the rule manager and the listener

	closing  sync.Once
	closeErr error
}

// Open starts a Store. The context bounds opening only; Close ends the store.
//
// The errors to expect are a port in use, which names the flag to change, and a directory in use
// by another process, which names the directory.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	cfg, err := prometheusConfig(o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: o, cfg: cfg, logger: o.Logger, started: time.Now(),
		registry: prometheus.NewRegistry(),
		features: features.NewRegistry(),
		parser:   parser.NewParser(parser.Options{}),
		stats:    tsdb.NewDBStats(),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	// The port first: it is the cheaper of the two to be refused.
	if s.listener, err = listen(ctx, o); err != nil {
		return nil, err
	}
	if s.db, err = s.openDB(); err != nil {
		return nil, err
	}
	s.engine = s.newEngine()
	if err = s.startRules(); err != nil {
		return nil, err
	}
	if err = s.startScraping(ctx); err != nil {
		return nil, err
	}
	if err = s.startServing(); err != nil {
		return nil, err
	}
	// Its own transport, so that Close leaves no connection of it behind.
	transport := &http.Transport{}
	s.idle = transport.CloseIdleConnections
	if s.client, err = api.NewClient(api.Config{Address: s.URL(), RoundTripper: transport}); err != nil {
		return nil, fmt.Errorf("client of the Prometheus API: %w", err)
	}
	return s, nil
}

// URL is the base of the HTTP API, as a Prometheus client or a Grafana data source wants it.
func (s *Store) URL() string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return "http://" + s.listener.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Close stops scraping, lets running queries end for a moment, writes what is in memory to disk
// and releases the directory and the port. Later calls return what the first one did.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	var errs []error
	if s.scraper != nil {
		s.scraper.Stop()
	}
	if s.rules != nil {
		s.rules.Stop()
	}
	if s.idle != nil {
		s.idle()
	}
	if s.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		if err := s.server.Shutdown(ctx); err != nil {
			s.cancel()
			errs = append(errs, s.server.Close())
		}
		cancel()
		s.cancel()
	} else if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	s.running.Wait()
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the data directory %s: %w", s.opts.Dir, err))
		}
	}
	return errors.Join(errs...)
}

func listen(ctx context.Context, o Options) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.ListenAddress)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another process: give the Prometheus API another address with %s (port 0 takes any free one): %w", o.ListenAddress, o.ListenFlag, err)
	default:
		return nil, fmt.Errorf("the Prometheus API can't listen on %s: change %s: %w", o.ListenAddress, o.ListenFlag, err)
	}
}

// openDB opens the data directory, replaying what the last writer left in its write-ahead log.
func (s *Store) openDB() (*tsdb.DB, error) {
	dir := s.opts.Dir
	if s.opts.ReadOnly {
		if err := holdsData(dir); err != nil {
			return nil, err
		}
	}
	if err := checkLock(dir); err != nil {
		return nil, err
	}
	opts := tsdb.DefaultOptions()
	opts.RetentionDuration = s.opts.Retention.Milliseconds()
	opts.WALCompression = compression.Snappy
	// Prometheus's own default, off, saves a goroutine and a copy per chunk.
	opts.HeadChunksWriteQueueSize = 0
	opts.FeatureRegistry = s.features
	db, err := tsdb.Open(dir, s.logger.With("component", "tsdb"), s.registry, opts, s.stats)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return nil, inUse(dir, err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("the data directory %s can't be written, which Prometheus needs even to read it: change its permissions, or copy the directory and open the copy: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("open the data directory %s: %w", dir, err)
	}
	if s.opts.ReadOnly {
		db.DisableCompactions()
	}
	return db, nil
}

// checkLock looks whether another process holds dir. tsdb.Open finds that out too, but only after
// it has removed temporary directories, which may be those of the process that holds it.
func checkLock(dir string) error {
	path := filepath.Join(dir, "lock")
	if _, err := os.Stat(path); err != nil {
		return nil // nobody holds it, or tsdb.Open will say what is wrong
	}
	lock, _, err := fileutil.Flock(path)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return inUse(dir, err)
	case err != nil:
		return nil
	}
	return lock.Release()
}

func inUse(dir string, err error) error {
	return fmt.Errorf("the data directory %s is in use by another process, perhaps by a run that still goes on: wait until that has ended, or choose another directory: %w", dir, err)
}

// holdsData refuses a directory in which no Prometheus ever wrote, so that a wrong path isn't
// answered with empty panels.
func holdsData(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("no Prometheus data to serve: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && (e.Name() == "wal" || fileExists(filepath.Join(dir, e.Name(), "meta.json"))) {
			return nil
		}
	}
	return fmt.Errorf("no Prometheus data in %s: neither a write-ahead log (wal) nor a block lies there", dir)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *Store) newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger:             s.logger.With("component", "query engine"),
		Reg:                s.registry,
		MaxSamples:         maxSamples,
		Timeout:            queryTimeout,
		ActiveQueryTracker: newGate(maxQueries),
		LookbackDelta:      lookbackDelta,
		NoStepSubqueryIntervalFn: func(int64) int64 {
			return time.Duration(s.cfg.GlobalConfig.EvaluationInterval).Milliseconds()
		},
		EnableAtModifier:     true,
		EnableNegativeOffset: true,
		FeatureRegistry:      s.features,
		Parser:               s.parser,
	})
}

func (s *Store) startRules() error {
	files, err := ruleFiles(s.cfg.RuleFiles)
	if err != nil {
		return err
	}
	if err := rules.ParseFiles(files, model.UTF8Validation, s.parser, s.logger); err != nil {
		return fmt.Errorf("rule files: %w", err)
	}
	m := rules.NewManager(&rules.ManagerOptions{
		Context:            context.Background(),
		AppendableV2:       s.db,
		Queryable:          s.db,
		QueryFunc:          rules.EngineQueryFunc(s.engine, s.db),
		NotifyFunc:         func(context.Context, string, ...*rules.Alert) {},
		ExternalURL:        &url.URL{},
		Registerer:         s.registry,
		Logger:             s.logger.With("component", "rule manager"),
		OutageTolerance:    time.Hour,
		ForGracePeriod:     10 * time.Minute,
		ResendDelay:        time.Minute,
		MaxConcurrentEvals: maxRuleQueries,
		FeatureRegistry:    s.features,
		Parser:             s.parser,
		DefaultRuleQueryOffset: func() time.Duration {
			return time.Duration(s.cfg.GlobalConfig.RuleQueryOffset)
		},
	})
	s.rules = m
	if err := m.Update(time.Duration(s.cfg.GlobalConfig.EvaluationInterval), files, s.cfg.GlobalConfig.ExternalLabels, "", nil); err != nil {
		return fmt.Errorf("rule files: %w", err)
	}
	s.running.Go(m.Run)
	return nil
}

func ruleFiles(patterns []string) ([]string, error) {
	var files []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, fmt.Errorf("rule files %q: %w", p, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("rule files %q: no such file", p)
		}
		files = append(files, found...)
	}
	return files, nil
}

// startScraping returns once every target has its scrape loop, so that Close can't overtake a
// loop that is being set up.
func (s *Store) startScraping(ctx context.Context) error {
	m, err := scrape.NewManager(&scrape.Options{
		// The targets are all known now: no reason to wait for more.
		DiscoveryReloadOnStartup: true,
		FeatureRegistry:          s.features,
	}, s.logger.With("component", "scrape manager"), nil, nil, s.db, s.registry)
	if err != nil {
		return fmt.Errorf("scraping: %w", err)
	}
	s.scraper = m
	if len(s.opts.Targets) == 0 {
		return nil
	}
	if err := m.ApplyConfig(s.cfg); err != nil {
		return fmt.Errorf("scraping: %w", err)
	}
	groups, err := targetGroups(s.cfg)
	if err != nil {
		return err
	}
	sets := make(chan map[string][]*targetgroup.Group, 1)
	sets <- groups
	s.running.Go(func() { _ = m.Run(sets) }) // Run has no error to return

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		n := 0
		for _, targets := range m.TargetsActive() {
			n += len(targets)
		}
		if n == len(s.opts.Targets) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("scraping: %d of %d targets could be set up: %w", n, len(s.opts.Targets), ctx.Err())
		}
	}
}

// targetGroups are the targets of cfg's static configurations by job: what Prometheus's discovery
// manager would hand to the scrape manager.
func targetGroups(cfg *config.Config) (map[string][]*targetgroup.Group, error) {
	scrapes, err := cfg.GetScrapeConfigs()
	if err != nil {
		return nil, fmt.Errorf("scraping: %w", err)
	}
	groups := map[string][]*targetgroup.Group{}
	for _, sc := range scrapes {
		for _, c := range sc.ServiceDiscoveryConfigs {
			if static, ok := c.(discovery.StaticConfig); ok {
				groups[sc.JobName] = append(groups[sc.JobName], static...)
			}
		}
	}
	return groups, nil
}

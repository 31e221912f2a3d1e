package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"firstbreach/alerts/rules"
	"firstbreach/internal/slo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := alive(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "alive:", err)
		os.Exit(1)
	}
}

// alive builds, starts everything, plays the incident, and takes everything down again. The logs of the
// servers are kept when it went wrong.
func alive(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "firstbreach-alive-")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s, err := newStack(dir, cancel)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer func() {
		cancel(nil)
		s.stopAll()
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			err = fmt.Errorf("%w\nlogs: %s", err, filepath.Join(dir, "*.log"))
		}
	}()
	if err := s.start(ctx); err != nil {
		return err
	}
	f, err := slo.Load(s.file("probe", "/etc/firstbreach/slo.yaml"))
	if err != nil {
		return err
	}
	err = incident{stack: s, slo: f, began: time.Now()}.play(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // a server ended: whatever was waited for can't come any more
	}
	return err
}

const (
	success = "success" // the objective that the overload breaks
	pageIn  = "1h"      // the long window of the page that is followed from firing to its end
)

// incident is what happens to the stack, and what must be seen.
type incident struct {
	*stack
	slo   *slo.File
	began time.Time
}

func (i incident) play(ctx context.Context) error {
	for _, act := range []func(context.Context) error{i.idle, i.healthy, i.overload, i.recovery, i.killed} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	i.say("done: every alert fired, and ended, when it should")
	return nil
}

func (i incident) say(format string, args ...any) {
	fmt.Printf("%4.0fs  %s\n", time.Since(i.began).Seconds(), fmt.Sprintf(format, args...))
}

// idle: everything is scraped and nothing was sent. The rules have counted no request, and an idle
// service has no ratio: it is neither good nor bad.
func (i incident) idle(ctx context.Context) error {
	i.say("idle: everything runs, nothing is sent")
	err := wait(ctx, time.Minute, "every target to be up and the rules to count no request", func(ctx context.Context) (bool, error) {
		up, _, err := i.value(ctx, `count(max by (job) (up{job=~"prometheus|alertmanager|probe|reports|exporter|engine"}) == 1)`)
		if err != nil || up < 6 {
			return false, err
		}
		n, counted, err := i.value(ctx, series(rules.Requests+"5m"))
		return counted && n == 0, err
	})
	if err != nil {
		return err
	}
	if share, known, err := i.value(ctx, series(rules.BadRatio+"5m")); err != nil || known {
		return fmt.Errorf("an idle service has a share of bad requests, %v (%v)", share, err)
	}
	if err := i.quiet(ctx); err != nil {
		return err
	}
	i.say("idle: 6 targets up, 0 requests, no share of bad ones, no alert")
	return nil
}

// healthy: at most a minute of the probe's requests, all answered.
func (i incident) healthy(ctx context.Context) error {
	if err := i.restartProbe(ctx); err != nil {
		return err
	}
	i.say("healthy: the probe asks every 500ms")
	var n float64
	err := wait(ctx, time.Minute, "the rules to have counted 40 requests", func(ctx context.Context) (_ bool, err error) {
		n, _, err = i.value(ctx, series(rules.Requests+"5m"))
		return n >= 40, err
	})
	if err != nil {
		return err
	}
	if share, known, err := i.value(ctx, series(rules.BadRatio+"5m")); err != nil || !known || share != 0 {
		return fmt.Errorf("the share of bad requests is %v (known: %v, %v) while all is well", share, known, err)
	}
	if err := i.quiet(ctx); err != nil {
		return err
	}
	i.say("healthy: %.0f requests, 0%% bad, no alert", n)
	return nil
}

// overload: more clients than the engine admits, until two fifths of all the probe's requests were turned away:
// so many that the next scrape and evaluation, up to half a minute and 60 good requests later, still see more
// than the page's limit. The page must reach the webhook with the owner and the action of the SLO file.
func (i incident) overload(ctx context.Context) error {
	i.say("overload: 32 clients against an engine that admits 8 requests")
	loaded, end := context.WithCancel(ctx)
	gone := i.crowd(loaded, 32)
	var share float64
	err := wait(ctx, 2*time.Minute, "two fifths of the probe's requests to be turned away", func(ctx context.Context) (_ bool, err error) {
		share, err = i.probeFailures(ctx)
		return share >= 0.4, err
	})
	end()
	<-gone
	if err != nil {
		return err
	}
	i.say("overload: ended; %.0f%% of the probe's requests were turned away so far", 100*share)
	page, err := i.hook.waitFor(ctx, 150*time.Second, "firing", rules.AlertBurn, map[string]string{rules.LabelSLO: success, rules.LabelLong: pageIn, rules.LabelSeverity: rules.Page})
	if err != nil {
		return err
	}
	for _, o := range i.slo.Objectives {
		if o.Name == success && (page.Labels[rules.LabelOwner] != o.Owner || page.Annotations["action"] != o.Action) {
			return fmt.Errorf("the page names owner %q and action %q, the SLO file %q and %q", page.Labels[rules.LabelOwner], page.Annotations["action"], o.Owner, o.Action)
		}
	}
	i.say("page: %s", page)
	return nil
}

// recovery: the page ends by itself, in Prometheus and in the Alertmanager.
func (i incident) recovery(ctx context.Context) error {
	err := wait(ctx, 6*time.Minute, "the page to end", func(ctx context.Context) (bool, error) {
		n, _, err := i.value(ctx, fmt.Sprintf(`count(ALERTS{alertname=%q,slo=%q,long=%q})`, rules.AlertBurn, success, pageIn))
		if err != nil || n > 0 {
			return false, err
		}
		pages, err := i.alerts(ctx, rules.AlertBurn, fmt.Sprintf(`slo=%q`, success), fmt.Sprintf(`long=%q`, pageIn))
		return len(pages) == 0, err
	})
	if err != nil {
		return err
	}
	i.say("recovery: the page over %s has ended, in Prometheus and in the Alertmanager", pageIn)
	return nil
}

// killed: an engine that is gone is told once, and what is read from it only echoes that.
func (i incident) killed(ctx context.Context) error {
	i.stop("sim")
	i.say("killed: the engine is gone")
	down, err := i.hook.waitFor(ctx, 4*time.Minute, "firing", rules.AlertDown, map[string]string{rules.LabelSource: "engine"})
	if err != nil {
		return err
	}
	i.say("page: %s", down)
	var muted int
	err = wait(ctx, time.Minute, "the target-down alert to silence the others", func(ctx context.Context) (bool, error) {
		others, err := i.alerts(ctx, rules.AlertBurn)
		muted = 0
		for _, a := range others {
			if len(a.Status.InhibitedBy) > 0 {
				muted++
			}
		}
		return len(others) > 0 && muted == len(others), err
	})
	if err != nil {
		return err
	}
	i.say("killed: it silences the %d alerts of %s that fire meanwhile", muted, rules.AlertBurn)
	return nil
}

// series is the recorded series of the objective that is followed.
func series(name string) string { return fmt.Sprintf(`%s{slo=%q}`, name, success) }

// quiet: nothing has fired at all in the last minutes.
func (i incident) quiet(ctx context.Context) error {
	n, _, err := i.value(ctx, `count(count_over_time(ALERTS{alertstate="firing"}[5m]))`)
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%.0f alerts have fired; see %s/alerts", n, i.url("prometheus"))
	}
	return nil
}

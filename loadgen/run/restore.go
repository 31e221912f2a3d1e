package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"firstbreach/loadgen/plan"
	"firstbreach/loadgen/record"
)

// defaultRestoreTimeout bounds a restore that the plan gives no timeout.
const defaultRestoreTimeout = time.Minute

// restore puts the target back as the plan says. It runs on every exit, and an interruption doesn't
// keep it from doing so: only its own timeout does.
func (r *Runner) restore(ctx context.Context) error {
	how := r.opts.Plan.Restore
	if len(how.Command) == 0 && how.Request == nil {
		return nil
	}
	r.opts.Progress.Note("putting the target back")
	err := r.within(context.WithoutCancel(ctx), how, "restore.timeout")
	result := "done"
	if err != nil {
		err = fmt.Errorf("restore: %w: the target may still be as the test left it", err)
		result = err.Error()
	}
	r.edit(func(m *record.Manifest) { m.Restore = result })
	return err
}

// within does what the plan says, and gives up after its timeout, which key names.
func (r *Runner) within(ctx context.Context, how plan.Restore, key string) error {
	timeout := how.Timeout
	if timeout <= 0 {
		timeout = defaultRestoreTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.putBack(ctx, how)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("not done within %s (%s)", timeout, key)
	}
	return err
}

func (r *Runner) putBack(ctx context.Context, how plan.Restore) error {
	if how.Request != nil {
		return send(ctx, r.opts.HTTP, *how.Request)
	}
	cmd := exec.CommandContext(ctx, how.Command[0], how.Command[1:]...)
	cmd.WaitDelay = time.Second // a child of its own that keeps the output open must not keep us
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil {
		r.opts.Logger.Error("a command of the plan failed", "command", how.Command[0], "output", string(out))
	}
	return err
}

// tail keeps the end of what a command says, for a log line.
type tail []byte

func (t *tail) Write(b []byte) (int, error) {
	const most = 500
	*t = append(*t, b...)
	if over := len(*t) - most; over > 0 {
		*t = append((*t)[:0], (*t)[over:]...)
	}
	return len(b), nil
}

func send(ctx context.Context, client *http.Client, q plan.Request) error {
	method := q.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, q.URL, strings.NewReader(q.Body))
	if err != nil {
		return err
	}
	if strings.HasPrefix(strings.TrimSpace(q.Body), "{") {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s answered %s", method, q.URL, res.Status)
	}
	return nil
}

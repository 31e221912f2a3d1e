package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"
)

// webhook is the pager: it listens where the shipped Alertmanager's configuration posts to, and keeps
// what it was told.
type webhook struct {
	server *http.Server

	mu   sync.Mutex
	told []told
}

// told is one alert of one message.
type told struct {
	alert
	Status string // firing or resolved
}

var hookURL = regexp.MustCompile(`url: ['"]?http://(127\.0\.0\.1:\d+)/`)

// listenHook listens at the address of the configuration's webhook.
func listenHook(config string) (*webhook, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return nil, err
	}
	m := hookURL.FindSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%s has no webhook on 127.0.0.1 to listen at", config)
	}
	l, err := net.Listen("tcp", string(m[1]))
	if err != nil {
		return nil, err
	}
	h := &webhook{}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := h.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "webhook:", err)
		}
	}()
	return h, nil
}

// ServeHTTP takes one message of the Alertmanager.
func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct{ Alerts []told }
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, message.Alerts...)
}

// waitFor waits until an alert with that status, name and labels has been told.
func (h *webhook) waitFor(ctx context.Context, limit time.Duration, status, name string, labels map[string]string) (a alert, err error) {
	what := fmt.Sprintf("the webhook to be told of %s %v %s", name, labels, status)
	err = wait(ctx, limit, what, func(context.Context) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, t := range h.told {
			if t.Status == status && t.Labels["alertname"] == name && t.has(labels) {
				a = t.alert
				return true, nil
			}
		}
		return false, nil
	})
	return a, err
}

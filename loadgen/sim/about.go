package sim

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// engineVersion is what /version says. It is no vLLM version, so that nobody takes the one for the other.
const engineVersion = "firstbreach-sim-1"

func (s *server) models(w http.ResponseWriter, _ *http.Request) {
	if s.stillLoading(w) {
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": s.cfg.Model, "object": "model", "owned_by": "firstbreach", "root": s.cfg.Model}},
	})
}

func (s *server) tags(w http.ResponseWriter, _ *http.Request) {
	if s.stillLoading(w) {
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"models": []any{map[string]any{
			"name": s.cfg.Model, "model": s.cfg.Model, "digest": s.digest(),
			"details": map[string]any{"format": "simulated", "family": "sim"},
		}},
	})
}

// digest tells one set of parameters from another.
func (s *server) digest() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(s.cfg.Args(), "\n"))))
}

func (s *server) version(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"version": engineVersion})
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	if s.stillLoading(w) {
		return
	}
	w.WriteHeader(http.StatusOK)
}

// stillLoading answers 503 while the model is loading.
func (s *server) stillLoading(w http.ResponseWriter) bool {
	if s.engine.available() == up {
		return false
	}
	refuse(w, openAI{}, trouble{status: http.StatusServiceUnavailable, message: "Loading model", kind: "unavailable_error"})
	return true
}

// postFault takes one fault in its text form.
func (s *server) postFault(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4096))
	if err == nil {
		var f Fault
		if f, err = ParseFault(string(body)); err == nil {
			err = s.engine.Inject(f)
		}
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// listFaults shows the faults that have not run their course.
func (s *server) listFaults(w http.ResponseWriter, _ *http.Request) {
	list := []string{}
	for _, f := range s.engine.Faults() {
		list = append(list, f.String())
	}
	writeJSON(w, http.StatusOK, map[string][]string{"faults": list})
}

func (s *server) clearFaults(w http.ResponseWriter, _ *http.Request) {
	s.engine.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // nobody is left to tell
}

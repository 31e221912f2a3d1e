//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// tool is a load generator.
type tool interface {
	name() string
	// install puts the tool into the folder if it isn't there.
	install(context.Context, settings) error
	// command reads n streams for the time in the settings; its results go to a folder.
	command(ctx context.Context, s settings, url string, n int, results string) *exec.Cmd
	// read tells the error of the TTFTs in these results.
	read(s settings, results string) (spread, error)
}

// loadgen is the whole of loadgen: client, decoders, histograms, ledger.
type loadgen struct{}

func (loadgen) name() string                            { return "loadgen" }
func (loadgen) install(context.Context, settings) error { return nil }

func (loadgen) command(ctx context.Context, s settings, url string, n int, results string) *exec.Cmd {
	return exec.CommandContext(ctx, os.Args[0], roleOurs, "--url="+url, "--result="+filepath.Join(results, resultFile),
		"--streams="+strconv.Itoa(n), "--warmup="+s.warmup.String(), "--measure="+s.measure.String())
}

func (loadgen) read(_ settings, results string) (v spread, err error) {
	raw, err := os.ReadFile(filepath.Join(results, resultFile))
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(raw, &v)
}

type guideLLM struct{}

const (
	guideLLMVersion = "0.8.1"
	aiPerfVersion   = "0.13.0"
	resultFile      = "result.json"
)

func (guideLLM) name() string { return "GuideLLM " + guideLLMVersion }

func (guideLLM) install(ctx context.Context, s settings) error {
	if err := writePrompts(filepath.Join(s.folder, "guidellm.jsonl"), "prompt"); err != nil {
		return err
	}
	return venv(ctx, filepath.Join(s.folder, "guidellm"), "guidellm=="+guideLLMVersion)
}

func (guideLLM) command(ctx context.Context, s settings, url string, n int, results string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(s.folder, "guidellm", "bin", "guidellm"), "run",
		"--backend", "kind=openai_http,target="+url+",model=m,request_format=/v1/chat/completions",
		"--profile", "kind=concurrent,streams="+strconv.Itoa(n),
		"--constraint", fmt.Sprintf("kind=max_duration,seconds=%g", (s.warmup+s.measure).Seconds()),
		"--data", "kind=json_file,path="+filepath.Join(s.folder, "guidellm.jsonl"),
		"--output", "kind=json,path="+filepath.Join(results, resultFile), "--disable-console")
}

func (guideLLM) read(s settings, results string) (spread, error) {
	raw, err := os.ReadFile(filepath.Join(results, resultFile))
	if err != nil {
		return spread{}, err
	}
	var report struct {
		Benchmarks []struct {
			Requests struct {
				Successful []struct {
					Start float64 `json:"request_start_time"` // seconds since 1970
					TTFT  float64 `json:"time_to_first_token_ms"`
				} `json:"successful"`
			} `json:"requests"`
		} `json:"benchmarks"`
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		return spread{}, err
	}
	if len(report.Benchmarks) != 1 {
		return spread{}, fmt.Errorf("%d benchmarks in its report, want 1", len(report.Benchmarks))
	}
	var told []request
	for _, r := range report.Benchmarks[0].Requests.Successful {
		told = append(told, request{time.UnixMicro(int64(r.Start * 1e6)), time.Duration(r.TTFT * float64(time.Millisecond))})
	}
	return errorOf(told, s.warmup), nil
}

type aiPerf struct{}

func (aiPerf) name() string { return "AIPerf " + aiPerfVersion }

// tokenizer makes a tokenizer that needs no download: the server counts, but AIPerf wants one.
const tokenizer = `
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", eos_token="[UNK]").save_pretrained(sys.argv[1])
`

func (aiPerf) install(ctx context.Context, s settings) error {
	if err := writePrompts(filepath.Join(s.folder, "aiperf.jsonl"), "text"); err != nil {
		return err
	}
	dir := filepath.Join(s.folder, "aiperf")
	if err := venv(ctx, dir, "aiperf=="+aiPerfVersion); err != nil {
		return err
	}
	return run(exec.CommandContext(ctx, filepath.Join(dir, "bin", "python"), "-c", tokenizer, filepath.Join(dir, "words")))
}

func (aiPerf) command(ctx context.Context, s settings, url string, n int, results string) *exec.Cmd {
	dir := filepath.Join(s.folder, "aiperf")
	return exec.CommandContext(ctx, filepath.Join(dir, "bin", "aiperf"), "profile",
		"--model", "m", "--url", url, "--endpoint-type", "chat", "--streaming", "--use-server-token-count",
		"--tokenizer", filepath.Join(dir, "words"), "--custom-dataset-type", "single_turn", "--input-file", filepath.Join(s.folder, "aiperf.jsonl"),
		"--concurrency", strconv.Itoa(n), "--benchmark-duration", fmt.Sprint((s.warmup + s.measure).Seconds()),
		"--ui", "none", "--no-server-metrics", "--no-gpu-telemetry", "--artifact-dir", results)
}

func (aiPerf) read(s settings, results string) (spread, error) {
	f, err := os.Open(filepath.Join(results, "profile_export.jsonl"))
	if err != nil {
		return spread{}, err
	}
	defer f.Close()
	var told []request
	for lines := json.NewDecoder(bufio.NewReader(f)); lines.More(); {
		var r struct {
			Metadata struct {
				Start int64 `json:"request_start_ns"`
			} `json:"metadata"`
			Metrics struct {
				TTFT *struct {
					Value float64 `json:"value"`
					Unit  string  `json:"unit"`
				} `json:"time_to_first_token"`
			} `json:"metrics"`
		}
		if err := lines.Decode(&r); err != nil {
			return spread{}, err
		}
		if t := r.Metrics.TTFT; t != nil {
			if t.Unit != "ms" {
				return spread{}, fmt.Errorf("its TTFT is in %q, want ms", t.Unit)
			}
			told = append(told, request{time.Unix(0, r.Metadata.Start), time.Duration(t.Value * float64(time.Millisecond))})
		}
	}
	return errorOf(told, s.warmup), nil
}

// request is one request as a tool tells of it.
type request struct {
	start time.Time
	ttft  time.Duration
}

// errorOf is how far the TTFTs are from the true one, of requests sent after the warm-up.
func errorOf(told []request, warmup time.Duration) spread {
	var first time.Time
	for _, r := range told {
		if first.IsZero() || r.start.Before(first) {
			first = r.start
		}
	}
	var errs []time.Duration
	for _, r := range told {
		if r.start.Sub(first) >= warmup {
			errs = append(errs, (r.ttft - prefill).Abs())
		}
	}
	return quantiles(errs)
}

// venv makes a virtual environment with one package, unless it is there already.
func venv(ctx context.Context, dir, requirement string) error {
	done := filepath.Join(dir, requirement)
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	fmt.Fprintln(os.Stderr, "installing", requirement, "into", dir)
	python, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("python3 with venv is needed to install it: %w", err)
	}
	if err := run(exec.CommandContext(ctx, python, "-m", "venv", dir)); err != nil {
		return err
	}
	if err := run(exec.CommandContext(ctx, filepath.Join(dir, "bin", "pip"), "install", "--quiet", requirement)); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

// run runs a command whose output matters only when it fails.
func run(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, out)
	}
	return nil
}

// writePrompts writes enough prompts for a tool that ends when it has none left.
func writePrompts(path, key string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	for i := range 30_000 {
		fmt.Fprintf(w, "{%q: \"Count the words of line %d and say how many there are.\"}\n", key, i)
	}
	return w.Flush()
}

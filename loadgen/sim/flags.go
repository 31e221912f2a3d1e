package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// Flags registers a flag for every parameter, with Default's values, and returns the Config that
// parsing fills. Call Validate on it after parsing.
func Flags(cmd *kingpin.CmdClause) *Config {
	c, d := Default(), Default()
	cmd.Flag("model", "The one model that is served.").Default(d.Model).StringVar(&c.Model)
	cmd.Flag("slots", "Requests in prefill and decode together.").Default(strconv.Itoa(d.Slots)).IntVar(&c.Slots)
	cmd.Flag("prefill-time", "Part of a prefill that every request spends on its own.").Default(d.PrefillTime.String()).DurationVar(&c.PrefillTime)
	cmd.Flag("prefill-rate", "Prompt tokens per second through the one prefill unit; 0: they take no time.").Default(float(d.PrefillRate)).Float64Var(&c.PrefillRate)
	cmd.Flag("step-base", "Time of a decode step, apart from its sequences.").Default(d.StepBase.String()).DurationVar(&c.StepBase)
	cmd.Flag("step-per-sequence", "Further time of a decode step for each sequence in it.").Default(d.StepPerSequence.String()).DurationVar(&c.StepPerSequence)
	cmd.Flag("kv-tokens", "Capacity of the KV cache in tokens; 0: no limit.").Default(strconv.Itoa(d.KVTokens)).IntVar(&c.KVTokens)
	cmd.Flag("max-requests", "Requests in the engine, queued ones included, beyond which it turns away; 0: no limit.").Default(strconv.Itoa(d.MaxRequests)).IntVar(&c.MaxRequests)
	cmd.Flag("reject", "How it turns away: 429, 503, or in-band (200 and an error event).").Default(d.Reject).EnumVar(&c.Reject, Reject429, Reject503, RejectInBand)
	cmd.Flag("reject-delay", "How long turning away takes.").Default(d.RejectDelay.String()).DurationVar(&c.RejectDelay)
	cmd.Flag("retry-after", "Retry-After of a rejection, in whole seconds; 0: none.").Default(d.RetryAfter.String()).DurationVar(&c.RetryAfter)
	cmd.Flag("default-tokens", "Length of an answer to a request without a limit.").Default(strconv.Itoa(d.DefaultTokens)).IntVar(&c.DefaultTokens)
	cmd.Flag("jitter", "Sigma of the lognormal factor on prefills and decode steps; 0: none.").Default(float(d.Jitter)).Float64Var(&c.Jitter)
	cmd.Flag("seed", "Seed of every random draw.").Default(strconv.FormatUint(d.Seed, 10)).Uint64Var(&c.Seed)
	cmd.Flag("error-share", "Share of requests that fail, 0 to 1.").Default(float(d.ErrorShare)).Float64Var(&c.ErrorShare)
	cmd.Flag("error-above", "They fail only with more requests than this in the engine; 0: always.").Default(strconv.Itoa(d.ErrorAbove)).IntVar(&c.ErrorAbove)
	cmd.Flag("error-status", "Their status, 500 to 599; 200: an error event in the stream.").Default(strconv.Itoa(d.ErrorStatus)).IntVar(&c.ErrorStatus)
	cmd.Flag("error-tokens", "With status 200: tokens before the error.").Default(strconv.Itoa(d.ErrorTokens)).IntVar(&c.ErrorTokens)
	cmd.Flag("load-time", "Time after the start in which the model is still loading.").Default(d.LoadTime.String()).DurationVar(&c.LoadTime)
	cmd.Flag("headers", "When a stream's headers go out: at-once, first-token, or auto (at-once on /v1, first-token on /api).").Default(d.Headers).EnumVar(&c.Headers, HeadersAuto, HeadersAtOnce, HeadersFirstToken)
	cmd.Flag("stamp", "Put sim_sent_ns, the time of sending on CLOCK_MONOTONIC, into every event.").BoolVar(&c.Stamp)
	cmd.Flag("fault", "A fault, such as stall:at=20s,for=5s or reset:request=17,tokens=3 or crash:at=30s,down=2s,load=3s. Repeatable.").SetValue((*faults)(&c.Faults))
	return &c
}

// Args returns the flags that give c, for a child process.
func (c Config) Args() []string {
	args := []string{
		"--model=" + c.Model,
		fmt.Sprintf("--slots=%d", c.Slots),
		"--prefill-time=" + c.PrefillTime.String(),
		"--prefill-rate=" + float(c.PrefillRate),
		"--step-base=" + c.StepBase.String(),
		"--step-per-sequence=" + c.StepPerSequence.String(),
		fmt.Sprintf("--kv-tokens=%d", c.KVTokens),
		fmt.Sprintf("--max-requests=%d", c.MaxRequests),
		"--reject=" + c.Reject,
		"--reject-delay=" + c.RejectDelay.String(),
		"--retry-after=" + c.RetryAfter.String(),
		fmt.Sprintf("--default-tokens=%d", c.DefaultTokens),
		"--jitter=" + float(c.Jitter),
		fmt.Sprintf("--seed=%d", c.Seed),
		"--error-share=" + float(c.ErrorShare),
		fmt.Sprintf("--error-above=%d", c.ErrorAbove),
		fmt.Sprintf("--error-status=%d", c.ErrorStatus),
		fmt.Sprintf("--error-tokens=%d", c.ErrorTokens),
		"--load-time=" + c.LoadTime.String(),
		"--headers=" + c.Headers,
	}
	if c.Stamp {
		args = append(args, "--stamp")
	}
	for _, f := range c.Faults {
		args = append(args, "--fault="+f.String())
	}
	return args
}

func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// faults is the repeatable flag --fault.
type faults []Fault

func (f *faults) Set(text string) error {
	fault, err := ParseFault(text)
	if err != nil {
		return err
	}
	*f = append(*f, fault)
	return nil
}

func (f *faults) String() string {
	var texts []string
	for _, fault := range *f {
		texts = append(texts, fault.String())
	}
	return strings.Join(texts, " ")
}

// IsCumulative tells kingpin that the flag may be repeated.
func (f *faults) IsCumulative() bool { return true }

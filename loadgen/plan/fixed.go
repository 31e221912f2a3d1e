package plan

import (
	"fmt"

	"firstbreach/internal/strictyaml"
)

var fixedKeys = []string{"prompts", "output_tokens", "ignore_eos", "context_length", "temperature", "seed"}

func (r *reader) fixed(v strictyaml.Value) {
	if !v.Require("write fixed: {prompts: {synthetic: {input_tokens: 256}}, output_tokens: 64}") {
		return
	}
	m := v.Map(fixedKeys...)
	if !v.IsMap() {
		return
	}
	f := &r.plan.Fixed
	r.prompts(m.Get("prompts"))
	if o := m.Get("output_tokens"); o.Require("write the length of an answer, such as output_tokens: 64") {
		readInt(o, &f.OutputTokens, 1, MaxTokens)
	}
	r.decoding(m)
	if s := f.Prompts.Synthetic; s != nil && f.ContextLength > 0 && s.InputTokens+f.OutputTokens > f.ContextLength {
		m.Get("context_length").Reject(fmt.Sprintf("%d is less than %d input and %d output tokens", f.ContextLength, s.InputTokens, f.OutputTokens),
			"raise it, or shorten prompts or answers")
	}
}

// decoding reads how answers are made; each has a default.
func (r *reader) decoding(m strictyaml.Map) {
	f := &r.plan.Fixed
	readBool(m.Get("ignore_eos"), &f.IgnoreEOS)
	readInt(m.Get("context_length"), &f.ContextLength, 0, 16*MaxTokens)
	if t, ok := m.Get("temperature").Float(); ok {
		if t < 0 || t > 2 {
			m.Get("temperature").Reject(fmt.Sprintf("%g is not between 0 and 2", t), "write 0, which makes rounds comparable")
		}
		f.Temperature = t
	}
	if n, ok := m.Get("seed").Int64(); ok {
		f.Seed = n
	}
}

func (r *reader) prompts(v strictyaml.Value) {
	if !v.Require("write prompts: {synthetic: {input_tokens: 256}} or {file: prompts.jsonl}") {
		return
	}
	m := v.Map("synthetic", "file", "sharegpt")
	synthetic, file, sharegpt := m.Get("synthetic"), m.Get("file"), m.Get("sharegpt")
	given := 0
	for _, one := range []strictyaml.Value{synthetic, file, sharegpt} {
		if one.Present() {
			given++
		}
	}
	p := &r.plan.Fixed.Prompts
	switch {
	case !v.IsMap():
	case given != 1:
		v.Reject("must name exactly one of synthetic, file and sharegpt", "write {synthetic: {input_tokens: 256}} or {file: prompts.jsonl}")
	case synthetic.Present():
		p.Synthetic = r.synthetic(synthetic)
	case file.Present():
		p.File = r.promptFile(file, readPromptFile)
	default:
		p.ShareGPT = r.promptFile(sharegpt, readShareGPT)
	}
}

func (r *reader) synthetic(v strictyaml.Value) *Synthetic {
	m := v.Map("input_tokens", "shared_prefix")
	s := &Synthetic{}
	n := m.Get("input_tokens")
	switch {
	case !v.IsMap() || !n.Require("write {input_tokens: 256}"):
		return s
	case n.IsMap():
		s.Lengths = r.lengths(n)
		s.InputTokens = s.Lengths.most()
	default:
		readInt(n, &s.InputTokens, 1, MaxTokens)
	}
	shared := m.Get("shared_prefix")
	if !shared.Present() {
		return s
	}
	m = shared.Map("tokens", "groups")
	s.SharedGroups = 1
	if t := m.Get("tokens"); shared.IsMap() && t.Require("write how many tokens all prompts begin with, such as {tokens: 200}") {
		readInt(t, &s.SharedTokens, 1, MaxTokens)
		if s.SharedTokens >= s.InputTokens && s.InputTokens > 0 {
			t.Reject(fmt.Sprintf("%d leaves nothing of %d input tokens", s.SharedTokens, s.InputTokens), "write fewer")
		}
	}
	readInt(m.Get("groups"), &s.SharedGroups, 1, distributedBodies)
	return s
}

// promptFile checks a file of prompts and returns its path.
func (r *reader) promptFile(v strictyaml.Value, read func(string) ([]item, []strictyaml.Problem)) string {
	name, ok := v.NonEmpty()
	if !ok {
		return ""
	}
	path := r.path(name)
	items, problems := read(path)
	switch {
	case len(problems) == 0:
		r.checkMessages(v, items)
	case problems[0].Line == 0: // the file as a whole: say it where the plan names it
		v.Reject(fmt.Sprintf("%s %s", path, problems[0].Message), problems[0].Fix)
	default:
		v.Reject(fmt.Sprintf("%s has %s", path, count(len(problems), "broken line")), "mend the lines named below")
		r.doc.Add(problems...)
	}
	return path
}

// checkMessages refuses conversations for an API that takes one text.
func (r *reader) checkMessages(v strictyaml.Value, items []item) {
	api := r.plan.Target.API
	if api != OpenAICompletions && api != OllamaGenerate {
		return
	}
	for _, it := range items {
		if len(it.history) > 0 {
			v.Reject("holds conversations, and "+api+" takes one text", "use "+OpenAIChat+" or "+OllamaChat)
			return
		}
	}
}

package plan

import (
	"fmt"

	"firstbreach/internal/strictyaml"
)

func (r *reader) fixed(v strictyaml.Value) {
	if !v.Require("write fixed: {prompts: {synthetic: {input_tokens: 256}}, output_tokens: 64}") {
		return
	}
	m := v.Map("prompts", "output_tokens", "ignore_eos", "context_length", "temperature", "seed")
	if !v.IsMap() {
		return
	}
	f := &r.plan.Fixed
	r.prompts(m.Get("prompts"))
	if o := m.Get("output_tokens"); o.Require("write the length of an answer, such as output_tokens: 64") {
		readInt(o, &f.OutputTokens, 1, MaxTokens)
	}
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
	if s := f.Prompts.Synthetic; s != nil && f.ContextLength > 0 && s.InputTokens+f.OutputTokens > f.ContextLength {
		m.Get("context_length").Reject(fmt.Sprintf("%d is less than %d input and %d output tokens", f.ContextLength, s.InputTokens, f.OutputTokens),
			"raise it, or shorten prompts or answers")
	}
}

func (r *reader) prompts(v strictyaml.Value) {
	if !v.Require("write prompts: {synthetic: {input_tokens: 256}} or {file: prompts.jsonl}") {
		return
	}
	m := v.Map("synthetic", "file")
	synthetic, file := m.Get("synthetic"), m.Get("file")
	if v.IsMap() && synthetic.Present() == file.Present() {
		v.Reject("must name exactly one of synthetic and file", "write {synthetic: {input_tokens: 256}} or {file: prompts.jsonl}")
		return
	}
	if synthetic.Present() {
		n := synthetic.Map("input_tokens").Get("input_tokens")
		s := &Synthetic{}
		if synthetic.IsMap() && n.Require("write {input_tokens: 256}") {
			readInt(n, &s.InputTokens, 1, MaxTokens)
		}
		r.plan.Fixed.Prompts.Synthetic = s
		return
	}
	name, ok := file.NonEmpty()
	if !ok {
		return
	}
	path := r.path(name)
	r.plan.Fixed.Prompts.File = path
	if _, problems := readPromptFile(path); len(problems) > 0 {
		if problems[0].Line == 0 { // the file as a whole: say it where the plan names it
			file.Reject(fmt.Sprintf("%s %s", path, problems[0].Message), problems[0].Fix)
			return
		}
		file.Reject(fmt.Sprintf("%s has %s", path, count(len(problems), "broken line")), "mend the lines named below")
		r.doc.Add(problems...)
	}
}

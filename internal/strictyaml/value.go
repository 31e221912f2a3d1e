package strictyaml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Value is one value of a document, or the absence of one. Its readers return ok = false when the
// value is absent, and also when it is wrong; then the problem is already noted. So a loader reads
// on and never reports one fault twice.
type Value struct {
	doc  *Document
	node ast.Node // nil: absent
	key  string
	line int
}

// Present reports whether the key was written.
func (v Value) Present() bool { return v.node != nil }

// Line is where the value was written; for an absent one, where its mapping begins.
func (v Value) Line() int { return v.line }

// Key is the dotted path of the value.
func (v Value) Key() string { return v.key }

// Reject notes a problem at the value.
func (v Value) Reject(message, fix string) { v.doc.add(v.line, v.key, message, fix) }

// Require notes a problem when the value is absent, and reports whether it is there.
func (v Value) Require(fix string) bool {
	if !v.Present() {
		v.Reject("is missing", fix)
	}
	return v.Present()
}

// read resolves aliases and refuses a key without a value: it is either a forgotten value or a key
// that should go, and guessing which would hide the first.
func (v Value) read() (ast.Node, bool) {
	if v.node == nil {
		return nil, false
	}
	n := v.doc.resolve(v.node, v.key)
	if n == nil {
		return nil, false
	}
	if n.Type() == ast.NullType {
		v.Reject("has no value", "give it one, or remove the key")
		return nil, false
	}
	return n, true
}

// Map is a mapping whose keys are known.
type Map struct {
	value   Value
	entries []Entry
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Name  string
	Value Value
}

// Map reads a mapping that may hold only the known keys; any other is a problem. An absent or wrong
// value reads as an empty mapping.
func (v Value) Map(known ...string) Map {
	m := Map{value: v, entries: v.Entries()}
	for _, e := range m.entries {
		if slices.Contains(known, e.Name) {
			continue
		}
		if near := Nearest(e.Name, known); near != "" {
			e.Value.Reject("unknown key", "did you mean "+near+"?")
			continue
		}
		e.Value.Reject("unknown key", "remove it; the keys here are "+strings.Join(known, ", "))
	}
	return m
}

// Get is the value of a key, absent when the key isn't there.
func (m Map) Get(name string) Value {
	for _, e := range m.entries {
		if e.Name == name {
			return e.Value
		}
	}
	return Value{doc: m.value.doc, key: join(m.value.key, name), line: m.value.line}
}

// Keys lists the keys as written, in the order of the file.
func (m Map) Keys() []string {
	names := make([]string, len(m.entries))
	for i, e := range m.entries {
		names[i] = e.Name
	}
	return names
}

// Entries reads a mapping with free keys, in the order of the file. A repeated key is a problem: the
// first counts.
func (v Value) Entries() []Entry {
	n, ok := v.read()
	if !ok {
		return nil
	}
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		v.Reject("must be a mapping (key: value), not "+describe(n), "")
		return nil
	}
	return v.entries(mapping, 0)
}

// entries reads the keys written in a mapping itself, then those it merges in with <<, which count
// only where it has no key of its own.
func (v Value) entries(mapping *ast.MappingNode, depth int) []Entry {
	var entries []Entry
	var merges []ast.Node
	for _, kv := range mapping.Values {
		if kv.Key.IsMergeKey() {
			merges = append(merges, kv.Value)
			continue
		}
		name, ok := v.keyName(kv.Key)
		if !ok {
			continue
		}
		line := nodeLine(kv.Key)
		entry := Entry{name, Value{doc: v.doc, node: kv.Value, key: join(v.key, name), line: line}}
		if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name }); i >= 0 {
			entry.Value.Reject(fmt.Sprintf("is given twice, first on line %d", entries[i].Value.line), "keep one of the two")
			continue
		}
		entries = append(entries, entry)
	}
	for _, m := range merges {
		for _, e := range v.merged(m, depth) {
			if !slices.ContainsFunc(entries, func(own Entry) bool { return own.Name == e.Name }) {
				entries = append(entries, e)
			}
		}
	}
	return entries
}

// merged reads the keys that a << brings in.
func (v Value) merged(n ast.Node, depth int) []Entry {
	at := Value{doc: v.doc, node: n, key: join(v.key, "<<"), line: nodeLine(n)}
	if depth >= maxAlias {
		at.Reject("merges lead in a circle", "write the keys out")
		return nil
	}
	if n = v.doc.resolve(n, at.key); n == nil {
		return nil
	}
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		at.Reject("must name one mapping, not "+describe(n), "write <<: *anchor")
		return nil
	}
	return v.entries(mapping, depth+1)
}

// keyName is a key's text. Keys that are mappings, aliases or tags have no use in these files.
func (v Value) keyName(k ast.MapKeyNode) (string, bool) {
	switch k.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, true
	}
	v.doc.add(nodeLine(k), v.key, "has a key that is not plain text", "write the key as a plain word")
	return "", false
}

// List reads a sequence. An absent or wrong value reads as an empty one.
func (v Value) List() []Value {
	n, ok := v.read()
	if !ok {
		return nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		v.Reject("must be a list, not "+describe(n), "write [...], or one - per entry")
		return nil
	}
	values := make([]Value, len(seq.Values))
	for i, item := range seq.Values {
		line := nodeLine(item)
		if line == 0 {
			line = v.line
		}
		values[i] = Value{doc: v.doc, node: item, key: v.key + "[" + strconv.Itoa(i) + "]", line: line}
	}
	return values
}

// IsScalar reports whether the value is there and neither a mapping nor a list; like IsMap and IsList
// it notes no problem.
func (v Value) IsScalar() bool { return v.Present() && !v.IsMap() && !v.IsList() }

// IsMap reports whether the value is there and a mapping.
func (v Value) IsMap() bool { _, ok := v.peek().(*ast.MappingNode); return ok }

// IsList reports whether the value is there and a list.
func (v Value) IsList() bool { _, ok := v.peek().(*ast.SequenceNode); return ok }

// peek is the value behind anchors and aliases, without noting problems; nil where there is none.
func (v Value) peek() ast.Node {
	n := v.node
	for range maxAlias {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			a := v.doc.anchorFor(x)
			if a == nil {
				return nil
			}
			n = a.Value
		default:
			return n
		}
	}
	return nil
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// describe names a kind of value for a person, without its content: that may be a secret.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	}
	return "this"
}

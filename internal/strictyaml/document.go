package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxSize is the largest file that is read, in bytes. Files written by hand are far smaller, and the
// parser's time grows with the square of the size.
const MaxSize = 256 << 10

// Document is one YAML document and the faults found in it so far.
type Document struct {
	file     string
	root     ast.Node
	anchors  []*ast.AnchorNode // in the order of the file
	problems []Problem
}

// Parse reads src; file names it in problems. The error is an *Error and says that nothing can be
// read from src at all: it isn't YAML, is empty or too large. Everything else that is wrong is kept
// in the document until Err.
func Parse(file string, src []byte) (*Document, error) {
	if len(src) > MaxSize {
		return nil, Errorf(file, "check that this is the right file", "is larger than %d bytes", MaxSize)
	}
	if bytes.IndexByte(src, 0) >= 0 {
		return nil, Errorf(file, "save it as UTF-8 text", "is not text")
	}
	text := lineBreaks.Replace(strings.TrimPrefix(string(src), "\ufeff"))
	tree, err := parse(text)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	d := &Document{file: file}
	d.pickDocument(tree)
	if d.root == nil {
		return nil, Errorf(file, "write at least its apiVersion", "is empty")
	}
	ast.Walk(anchorVisitor{d}, d.root)
	return d, nil
}

// lineBreaks makes every line break the same: the parser counts those of Windows twice in block texts.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// parse calls the YAML parser. A parser that panics on odd input must not take the program down:
// to the person who wrote the file it is a syntax error like any other.
func parse(text string) (f *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("is not valid YAML: %v", r)
		}
	}()
	return parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
}

// syntaxError keeps the parser's message and line and leaves its drawing of the source away.
func syntaxError(file string, err error) *Error {
	p := Problem{File: file, Message: "is not valid YAML: " + err.Error(), Fix: "check indentation, quotes and brackets around this line"}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		p.Message = "is not valid YAML: " + syntax.GetMessage()
		if tk := syntax.GetToken(); tk != nil && tk.Position != nil {
			p.Line = tk.Position.Line
		}
	}
	return &Error{[]Problem{p}}
}

// pickDocument takes the first document with content. A second one would be ignored by most
// readers in silence, so it is a fault.
func (d *Document) pickDocument(f *ast.File) {
	for _, doc := range f.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if d.root == nil {
			d.root = doc.Body
			continue
		}
		d.add(nodeLine(doc.Body), "", "holds a second YAML document", "keep one document per file")
		return
	}
}

// Root is the document's outermost value.
func (d *Document) Root() Value {
	return Value{doc: d, node: d.root, line: nodeLine(d.root)}
}

// Err is nil or an *Error with every problem found so far.
func (d *Document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return newError(d.file, d.problems)
}

// Add puts a problem found elsewhere, such as in a file that this one names, beside the document's own.
func (d *Document) Add(problems ...Problem) { d.problems = append(d.problems, problems...) }

func (d *Document) add(line int, key, message, fix string) {
	d.Add(Problem{File: d.file, Line: line, Key: key, Message: message, Fix: fix})
}

// anchorVisitor collects the anchors of a document.
type anchorVisitor struct{ doc *Document }

// Visit implements ast.Visitor.
func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		v.doc.anchors = append(v.doc.anchors, a)
	}
	return v
}

// maxAlias bounds how many aliases are followed from one value: an anchor may contain an alias of itself.
const maxAlias = 16

// resolve follows anchors and aliases to the value that is meant; nil, with a problem noted, where
// there is none.
func (d *Document) resolve(n ast.Node, key string) ast.Node {
	for range maxAlias {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			a := d.anchorFor(x)
			if a == nil {
				d.add(nodeLine(x), key, fmt.Sprintf("the alias %s names no anchor above it", quote("*"+aliasName(x))), "define the anchor first, or write the value out")
				return nil
			}
			n = a.Value
		case *ast.TagNode:
			d.add(nodeLine(x), key, "YAML tags are not read here", "remove the tag "+x.Start.Value)
			return nil
		default:
			return n
		}
	}
	d.add(nodeLine(n), key, "aliases lead in a circle", "write the value out")
	return nil
}

// anchorFor finds the last anchor of the alias's name that stands before it.
func (d *Document) anchorFor(alias *ast.AliasNode) *ast.AnchorNode {
	var found *ast.AnchorNode
	for _, a := range d.anchors {
		if a.Name == nil || a.Start.Position.Offset > alias.Start.Position.Offset {
			continue
		}
		if a.Name.GetToken().Value == aliasName(alias) {
			found = a
		}
	}
	return found
}

func aliasName(n *ast.AliasNode) string {
	if n.Value == nil {
		return ""
	}
	return n.Value.GetToken().Value
}

// nodeLine is the line on which a value begins, 0 when the parser doesn't say. A block mapping's own
// token is the colon after its first key, which may stand lines below an explicit key, so that key counts.
func nodeLine(n ast.Node) int {
	if n == nil {
		return 0
	}
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if n == nil {
		return 0
	}
	tk := n.GetToken()
	if tk == nil || tk.Position == nil {
		return 0
	}
	return tk.Position.Line
}

package promexpr

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// Parse reads an expression that a person wrote and reports where it is wrong. Experimental
// functions are accepted: whether they are there is for the server to say.
func Parse(text string) (Expr, error) {
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})
	e, err := p.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("PromQL: %w", err)
	}
	return e, nil
}

// ParseVector is Parse for an expression that must give numbers: an instant vector or a scalar.
func ParseVector(text string) (Expr, error) {
	e, err := Parse(text)
	if err != nil {
		return nil, err
	}
	switch t := e.Type(); t {
	case parser.ValueTypeVector, parser.ValueTypeScalar:
		return e, nil
	default:
		return nil, fmt.Errorf("PromQL: the expression gives a %s; write one that gives an instant vector or a scalar", parser.DocumentedType(t))
	}
}

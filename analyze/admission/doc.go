// Package admission is a small proxy that applies admission limits in front of a target: so many
// requests at once, so many waiting, each for so long, and a quick refusal for the rest.
//
// It exists to try limits out before somebody sets them in a gateway. It knows nothing of models,
// measures nothing, and is no gateway for production.
package admission

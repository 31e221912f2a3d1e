// Package sim is a simulated LLM serving engine with continuous batching: a queue, slots, a prefill,
// a batch that decodes in steps, a KV cache that can run out, and the faults that real servers have.
// It speaks the OpenAI and Ollama APIs and shows its inside under vLLM's metric names. What a load
// test must find against it follows from its parameters; see Config.FirstBreach and docs/simulator.md.
//
// It runs no model, and nothing here measures: it knows no plan, no SLO file and no client.
package sim

// Package wire speaks the streaming dialects of LLM servers, one file per dialect: it builds the
// request body, decodes SSE or NDJSON as the bytes come in, and turns one request into one Result.
//
// It knows nothing of load shapes, metrics or plans.
package wire

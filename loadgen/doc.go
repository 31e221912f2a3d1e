// Command loadgen drives an LLM endpoint through a plan and exposes what it measured, or serves the
// simulated engine. This package only parses flags and joins the rooms beside it.
package main

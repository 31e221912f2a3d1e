// Package strictyaml reads one YAML document strictly and with positions, for files that people
// write by hand. A reader asks for the keys it knows; every unknown or repeated key, wrong type and
// impossible value is collected, so that one run names all faults of a file, each with its line, its
// key and what to write instead.
//
// It knows no file format: what a key means is its readers' business.
package strictyaml

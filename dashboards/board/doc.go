// Package board turns a description of a dashboard into the JSON that Grafana provisions: places,
// ids, variables, annotations, and the settings that every panel of ours has.
//
// What is drawn, and with which queries, is for package boards.
package board

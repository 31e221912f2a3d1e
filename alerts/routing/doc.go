// Package routing makes the Alertmanager's configuration of the SLO files' owners: who is told, in
// which order, and which alert is silent while another explains it.
//
// It sends nothing, and knows nothing of rules but the labels that every alert has.
package routing

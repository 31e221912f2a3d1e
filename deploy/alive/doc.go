// Command alive shows that the shipped alerts work in real servers: go run ./deploy/alive
//
// It starts Prometheus and the Alertmanager of the machine (Debian's packages prometheus and
// prometheus-alertmanager) with the files that compose.yaml mounts into them, the simulated engine, the
// probe, the exporter and the scheduled reports, all on the loopback, and plays an incident: nothing sent,
// healthy traffic, an overload, recovery, an engine that is killed. It ends with status 1 where an alert
// fires that shouldn't, or doesn't that should.
//
// It takes six to eight minutes, because rules and routing keep their own times. Tickets, whose windows are
// hours, are played by the rules' unit tests instead.
package main

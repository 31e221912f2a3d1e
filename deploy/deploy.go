// Package deploy holds no code: it is what compose.yaml and Kubernetes mount, and the tests that hold
// those files to the binaries that they start.
package deploy

//go:generate go run ../alerts --quiet --slo slo.yaml --out alerts --alertmanager.base alertmanager.base.yml --dashboard.url http://127.0.0.1:3000 --report.url http://127.0.0.1:10512
//go:generate go run ../alerts --quiet --slo slo.yaml --out kubernetes --format kubernetes --dashboard.url http://127.0.0.1:3000 --report.url http://127.0.0.1:10512
//go:generate go run ../dashboards --slo slo.yaml --out dashboards

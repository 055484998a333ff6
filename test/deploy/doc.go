// Package deploy tests the files with which a site is deployed: alerts and the
// dashboard against what a running broker shows, the Helm chart and the plain
// manifests against a real Kubernetes (make test-kube), the alerts by Prometheus'
// own tool (make test-metrics). It sees the product from outside only.
package deploy

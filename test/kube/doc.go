// Package kube tests sites whose tasks are Jobs of a real Kubernetes, from outside:
// all steps of a job's way. It has tests with the build tag "kube" only (make
// test-kube), since they need root and what .ci/kube builds.
package kube

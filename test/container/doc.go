// Package container tests sites whose tasks are containers, on real engines and
// from outside: all steps of a job's way. It has tests with the build tag
// "container" only (make test-container), since they need root and engines.
package container

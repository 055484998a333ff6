// Package guard is the watchdog in a task's pod: the first process of its
// container, this very program copied there (see [Main]), and the questions by
// which it learns from the handler how long the task may live. Step 6 of a job's
// way.
//
// The guard begins nothing before it was told for how long, and ends the task by
// its own clock when it is told nothing more: neither the broker nor Kubernetes is
// needed for that. The package imports the contract and what owns attempts, never
// the handler, and nothing of Kubernetes.
package guard

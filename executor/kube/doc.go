// Package kube runs tasks with an image on a Kubernetes cluster: step 6 of a
// job's way.
//
// Each attempt is one batch/v1 Job, mapped one to one and tied to the node that
// the federation chose; Kubernetes' own scheduler has the last word there, since
// others use the node, too. A Job's name follows from its attempt, so it is never
// made twice, and its labels say whose it is, so that a restarted broker finds it
// again. Pods, Jobs and nodes are watched, nothing is polled. The kubelet ends a
// task at its active deadline, whoever else is there: see [Handler.Bound]; or a
// watchdog in the pod does, at its site's lease: see [Watched].
//
// The package imports the contract (executor) and nothing of the broker.
package kube

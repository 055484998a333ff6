// Package local runs tasks as real processes of this machine: step 6 of a job's
// way.
//
// Every attempt is owned by a supervisor: a small process of the same binary
// (see [Supervise]) that outlives the broker and by itself kills the attempt
// at its timeout and at its fence. The [Handler] keeps a few of them warm,
// hands each one attempt at a time, and finds them again after a restart.
//
// The package imports the contract (executor) and nothing of the broker.
package local

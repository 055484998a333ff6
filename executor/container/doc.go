// Package container runs tasks with an image in containers of this machine, by
// the Docker Engine API: step 6 of a job's way. Docker and Podman answer it.
//
// Each attempt is one container, whose first process is this very program (see
// package box): it ends the task at its timeout and at its fence by itself, and
// tells how it ended through files. So neither the broker nor the engine need to
// be there for what runs; the engine is asked to make containers, to start them
// and to take them away. The [Handler] finds them again after a restart.
//
// The package imports the contract (executor) and nothing of the broker.
package container

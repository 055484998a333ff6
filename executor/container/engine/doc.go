// Package engine is a client for the dozen calls of the Docker Engine API that a
// handler of containers makes; Podman's service answers the same ones. It knows
// nothing of tasks.
package engine

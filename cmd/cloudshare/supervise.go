package main

import (
	"os"

	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/kube/guard"
	"github.com/cloudshare/cloudshare/executor/local"
	"github.com/cloudshare/cloudshare/executor/plan"
	"github.com/cloudshare/cloudshare/executor/sandbox/outbound"
	"github.com/cloudshare/cloudshare/executor/steps"
)

// supervise is the other life of this binary: the process that owns one
// attempt, on a local machine, in a container or in a pod. Nothing else of the program may
// run before it.
func supervise(args []string) (code int, yes bool) {
	switch {
	case len(args) > 0 && args[0] == "supervise":
		return local.Supervise(args[1:]), true
	case len(args) > 0 && args[0] == outbound.Verb:
		return outbound.Serve(args[1:]), true
	case len(args) == 1 && args[0] == box.Verb:
		return box.Init(), true
	case len(args) == 1 && args[0] == plan.Verb && os.Args[0] == plan.Program:
		return steps.Main(), true
	case len(args) == 2 && args[0] == box.NetworkVerb:
		return box.KeepNetwork(args[1:]), true
	case len(args) > 1 && args[0] == guard.Verb:
		return guard.Main(args[1:]), true
	}
	return 0, false
}

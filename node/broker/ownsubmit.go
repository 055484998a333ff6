package broker

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/jobinputs"
	"github.com/cloudshare/cloudshare/node/core"
)

// withFiles reports whether files travel with what a request submits.
func withFiles(r node.Request) bool { return r.Spec.HasFiles() }

// resolve looks up the files of requests. The core gets the requests that it returns, and answers to the function:
// whoever is answered that a job was accepted has its files kept. k may be nil: then no such job is taken.
func (k *ownFiles) resolve(reqs []node.Request, reply func(int, node.Answer)) ([]node.Request, func(int, node.Answer)) {
	reqs = slices.Clone(reqs)
	found := make([]*jobinputs.Found, len(reqs))
	var call *jobinputs.Call
	for i := range reqs {
		r := &reqs[i]
		switch {
		case r.Refused != nil || !withFiles(*r):
		case k == nil:
			r.Refused = node.ErrNoFiles
		default:
			if call == nil {
				call = k.inputs.Begin()
			}
			found[i], r.Refused = call.Resolve(r.User, &r.Spec)
		}
	}
	return reqs, func(i int, a node.Answer) {
		if found[i] != nil && a.Err == nil && !a.Replayed {
			k.inputs.Keep(a.ID.Num, found[i])
		}
		reply(i, a)
	}
}

// say tells the federation what became of outputs.
func (k *ownFiles) say(list []command.Delivered, done func(command.Code)) {
	k.post(core.DeliverEvent{Attempts: list, Done: done})
}

package core

import "github.com/cloudshare/cloudshare/fsm/command"

// deliver tells the federation what became of outputs. Of what is not delivering any more nothing changes, and what a
// new epoch has lost its owner finds in the state again.
func (c *Core) deliver(ev DeliverEvent) {
	c.out.Add(&command.Deliver{Attempts: ev.Attempts}, func(r command.Result, _ StateReader, _ *Effects) {
		ev.Done(r.Code)
	})
}

package attempts

import "github.com/cloudshare/cloudshare/node/core/turn"

// maxYielded is how many attempts at home yield their machine while their results wait for room. Further ones keep it:
// what tasks leave in their work folders does not pile up without an end.
const maxYielded = 16

// Wait notes that the outputs of an ended attempt wait for room at this site. Others may have its machine meanwhile, if
// only this site counts what it takes of it.
func (b *Book) Wait(a *Attempt) {
	a.waits = true
	if a.Home && a.Ended == nil && !a.yielded && b.yielded < maxYielded {
		a.yielded = true
		b.yielded++
		b.machines.Free(a.Machine, a.Need, a.Home)
	}
}

// free gives back what an attempt takes of its machine, once.
func (b *Book) free(a *Attempt) {
	if a.yielded {
		b.yielded--
		return
	}
	b.machines.Free(a.Machine, a.Need, a.Home)
}

// stopWaiting ends the wait of an attempt's outputs for room, if they do: its task is to be stopped.
func (b *Book) stopWaiting(a *Attempt, why string, fx *turn.Effects) {
	if !a.Collecting || !a.waits || a.unwanted {
		return
	}
	a.unwanted, a.dueWhy = true, why
	fx.Stops = append(fx.Stops, turn.StopEffect{
		HandlerID: turn.HandlerID{Handler: a.Handler, ID: a.ID}, Why: why, Ended: true,
	})
}

// Unwanted returns why the outputs of an attempt are not waited for any more.
func (a *Attempt) Unwanted() string { return a.dueWhy }

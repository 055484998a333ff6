package turn

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// Effects are what the shell must do after a step: stops, fences and commands
// that only say what has happened at once; then sync the writes; then the rest.
type Effects struct {
	Writes  []record.Write
	Starts  []StartEffect
	Stops   []StopEffect
	Forgets []HandlerID
	// Propose stands in one entry, in order.
	Propose []command.Command
	Replies []func()
	// Publishes: a publication is among the writes.
	Publishes bool
	// Fence, if not 0, is the new CLOCK_BOOTTIME fence of all foreign attempts.
	Fence int64
	// LostBefore, if not 0, is the CLOCK_BOOTTIME end of the lease under which this broker was declared lost, though
	// nothing else than silence was said of it: it was wronged if that is still to come.
	LostBefore int64
	// Register, if set, presents this broker again: it was declared lost.
	Register *Registration
	Demand   *executor.Demand // nil: as before
	// Asks are for the brokers of other sites; each is answered once, if only with an error.
	Asks []KeyAsk
	// Collects are answered once each, by a CollectedEvent.
	Collects []CollectEffect
}

// KeyAsk asks an owner for the keys of attempts that are assigned here, by the state as of an entry.
type KeyAsk struct {
	Owner    string
	Index    uint64
	Attempts []command.AttemptRef
}

// HandlerID names an attempt and the handler that has it.
type HandlerID struct {
	Handler string
	ID      executor.ID
}

// StartEffect has a handler start a task.
type StartEffect struct {
	HandlerID
	Task executor.Task
	// Index is the task's for its user: of each input that is one file for each task it gets the one at that place.
	Index uint32
	// Inputs are what the job's user has each task find, as the owner's broker has resolved them. The task has no Files
	// yet: whoever carries this out brings their bytes here first. Their contents are shared, and only read.
	Inputs []jobspec.Input
	// Stage: the bytes are another site's, and are only fetched now. Another StartEffect follows once they are here.
	Stage bool
}

// CollectEffect has what an ended attempt has left be kept for its job's owner.
type CollectEffect struct {
	HandlerID
	Outputs executor.Outputs
	Result  executor.Result // its end, which is not reported before
}

// StopEffect has a handler stop an attempt, with why for people.
type StopEffect struct {
	HandlerID
	Why string
	// Early: its handler may not have it yet. What prepares its start ends.
	Early bool
	// Ended: it runs no more, and its outputs wait for room. That ends.
	Ended bool
}

// Registration presents a broker: what it still answers for, and what it lost
// track of.
type Registration struct {
	Held, Lost []command.AttemptRef
}

// Recorded reports whether anything of the turn waits for the journal.
func (fx *Effects) Recorded() bool {
	return len(fx.Writes)+len(fx.Starts)+len(fx.Replies)+len(fx.Forgets)+len(fx.Propose) > 0
}

// Reply has an answer sent once the writes of this turn are durable.
func (fx *Effects) Reply(reply func(node.Answer), a node.Answer) {
	fx.Replies = append(fx.Replies, func() { reply(a) })
}

// Clear forgets what was carried out and keeps the memory. What is proposed is
// the caller's until the turn after.
func (fx *Effects) Clear() {
	*fx = Effects{
		Writes: fx.Writes[:0], Starts: fx.Starts[:0], Stops: fx.Stops[:0], Forgets: fx.Forgets[:0],
		Propose: fx.Propose, Replies: fx.Replies[:0], Asks: fx.Asks[:0], Collects: fx.Collects[:0],
	}
}

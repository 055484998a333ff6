package core

import (
	"crypto/sha256"
	"math"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/unseal"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/seal"
)

// Driver is a broker's core with another shell: instead of goroutines, a
// journal, a network and processes, its caller. The caller decides when entries
// are ordered, when tasks end and what time it is; nothing else differs from a
// Broker's core (architecture D11). Not safe for concurrent use.
//
// A turn is any number of events followed by Settle, as in Broker.stepGroup. What the
// core would have synced counts as synced, and the lease never ends.
type Driver struct {
	core *Core
	fx   Effects
	zero time.Time
	// orders of the last turn: the next one takes their slices.
	orders Orders
}

// Orders is what a turn asks of the shell.
type Orders struct {
	// Starts are for the handler; it answers with Started, Accepted and Ended.
	Starts []executor.Task
	// Propose stands in one entry, in order; its results come back by Executed.
	Propose []command.Command
	// Asks are for other sites' Keys; their answers come back by Answered.
	Asks []KeyAsk
}

// driverHandler is the name of a driven site's only handler.
const driverHandler = "virtual"

// NewDriver returns the core of a site whose clock starts at zero. Its secret is made of its name, so that equal runs
// seal alike.
func NewDriver(site string, limits node.Exposure, zero time.Time) *Driver {
	d := &Driver{core: New(seal.New(sha256.Sum256([]byte(site)), seal.Whose{Site: site}), limits), zero: zero}
	d.core.bounds.SetGuard(driverHandler, Guard{Watchdog: true})
	d.core.lease.until = math.MaxInt64
	d.At(0)
	return d
}

// At sets the clock of the events that follow.
func (d *Driver) At(elapsed time.Duration) {
	d.core.now = Clock{Wall: d.zero.Add(elapsed), Boot: int64(elapsed)}
}

// Registered gives the core the result of its site's Register.
func (d *Driver) Registered(r command.Result, s StateReader) {
	d.core.Step(RegisteredEvent{Result: r}, s, &d.fx)
}

// Machines says what the site's handler has now.
func (d *Driver) Machines(machines []executor.Machine) {
	d.core.Step(CapacityEvent{driverHandler, machines}, nil, &d.fx)
}

// Submit returns the paper's event 1. It returns the job's number, and whether the
// job is on its way to the queue; if not, its tasks start at home with this turn.
func (d *Driver) Submit(spec jobspec.Spec, s StateReader) (num uint64, published bool) {
	num, before := d.core.nextJob, d.core.pubs.Opened()
	ev := SubmitEvent{Reqs: []node.Request{{Spec: spec}}, Reply: func(int, node.Answer) {}}
	d.core.Step(ev, s, &d.fx)
	return num, d.core.pubs.Opened() > before
}

// Started says that an attempt runs.
func (d *Driver) Started(id executor.ID, s StateReader) { d.core.Step(StartedEvent{id}, s, &d.fx) }

// Accepted says that the handler has an attempt, so that it can be told to stop it.
func (d *Driver) Accepted(id executor.ID, s StateReader) { d.core.Step(AcceptedEvent{id}, s, &d.fx) }

// Ended says how an attempt ended.
func (d *Driver) Ended(id executor.ID, r executor.Result, s StateReader) {
	d.core.Step(EndedEvent{id, r}, s, &d.fx)
}

// Tick lets a moment pass: starts are reported.
func (d *Driver) Tick(s StateReader) {
	if (d.core.ticks+1)%usageTicks == 0 {
		d.core.ticks++ // that one is Second's
	}
	d.core.Step(TickEvent{}, s, &d.fx)
}

// Second lets a second's ticks pass: starts and home runs are reported.
func (d *Driver) Second(s StateReader) {
	d.core.ticks += usageTicks - 1 - d.core.ticks%usageTicks
	d.core.Step(TickEvent{}, s, &d.fx)
}

// Unreported returns how many ended home runs no batch holds yet: a batch has a bounded
// number of rows, and the next one waits for a second's ticks.
func (d *Driver) Unreported() int { return d.core.usage.Unreported() }

// Executed gives the core the results of what it proposed.
func (d *Driver) Executed(cmds []command.Command, results []command.Result, s StateReader) {
	d.core.Step(ResultEvent{Cmds: cmds, Results: results}, s, &d.fx)
}

// Keys answers another site's KeyAsk.
func (d *Driver) Keys(from string, refs []command.AttemptRef, s StateReader) []seal.Answer {
	answers := make([]seal.Answer, len(refs))
	for i, ref := range refs {
		answers[i] = unseal.Answer(d.core.sealer, from, ref, s)
	}
	return answers
}

// Answered gives the core what another site's Keys returned.
func (d *Driver) Answered(owner string, answers []seal.Answer, s StateReader) {
	d.core.Step(KeysEvent{Owner: owner, Answers: answers}, s, &d.fx)
}

// Settle ends a turn and returns what it asks for; the slices are valid until
// the next call.
func (d *Driver) Settle(s StateReader) Orders {
	d.core.Settle(s, &d.fx)
	d.orders.Starts = d.orders.Starts[:0]
	for i := range d.fx.Starts {
		d.orders.Starts = append(d.orders.Starts, d.fx.Starts[i].Task)
	}
	d.orders.Propose, d.fx.Propose = d.fx.Propose, d.orders.Propose[:0]
	d.orders.Asks, d.fx.Asks = d.fx.Asks, d.orders.Asks[:0]
	d.fx.Clear()
	return d.orders
}

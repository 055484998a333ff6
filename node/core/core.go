package core

import (
	"iter"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/after"
	"github.com/cloudshare/cloudshare/node/core/ahead"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/bounds"
	"github.com/cloudshare/cloudshare/node/core/gates"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/core/lend"
	"github.com/cloudshare/cloudshare/node/core/machines"
	"github.com/cloudshare/cloudshare/node/core/own"
	"github.com/cloudshare/cloudshare/node/core/priorities"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/core/quotas"
	"github.com/cloudshare/cloudshare/node/core/reports"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/core/unseal"
	"github.com/cloudshare/cloudshare/node/core/usage"
	"github.com/cloudshare/cloudshare/node/seal"
	"github.com/cloudshare/cloudshare/node/trouble"
	"github.com/cloudshare/cloudshare/node/whose"
)

// The shell knows a turn by these names.
type (
	// StateReader is what the core reads of the replicated state; a *fsm.State is one.
	StateReader = turn.StateReader
	// Clock is the moment of an event, read by the shell.
	Clock = turn.Clock
	// Effects are what the shell must do after a step.
	Effects = turn.Effects
	// HandlerID names an attempt and the handler that has it.
	HandlerID = turn.HandlerID
	// StartEffect has a handler start a task.
	StartEffect = turn.StartEffect
	// CollectEffect has what an ended attempt has left be kept.
	CollectEffect = turn.CollectEffect
	// KeyAsk asks another site's broker for keys of what it has assigned here.
	KeyAsk = turn.KeyAsk
	// StopEffect has a handler stop an attempt, with why for people.
	StopEffect = turn.StopEffect
	// Registration presents a broker: what it still answers for, and what it lost track of.
	Registration = turn.Registration
	// Guard is what makes sure that a handler's foreign attempts end.
	Guard = bounds.Guard
	// Terms are a handler's, as the core goes by them.
	Terms = machines.Terms
	// Drain is a site's wish to run nothing for others, or nothing at all.
	Drain = lend.Drain
)

// MaxBehind is how many commands may have to stay with the one before them, in one entry.
const MaxBehind = turn.MaxBehind

// Core is the broker's state and rules without any input or output: events in,
// effects out. One goroutine owns it. Each concern has a book in a package below,
// which the core asks and composes; what is left here decides between them.
type Core struct {
	site   string
	sealer *seal.Sealer
	now    Clock
	out    turn.Outbox
	// incarnation is 0 until this start of the broker has been registered;
	// before that it starts nothing for the federation and offers nothing.
	incarnation uint64

	machines machines.Set
	attempts attempts.Book
	// seen is the entry up to which assignments were reconciled; 0: all are looked
	// at next. again are single ones to be looked at next.
	seen  uint64
	again []command.AttemptRef
	// returned are assignments whose Decline, or end without a start, is being
	// ordered. Invariant: none of them has a pledge.
	returned map[executor.ID]bool
	ahead    ahead.Book
	unseal   unseal.Book
	inputs   inputs.Book
	// unstopped: a handler failed to stop an attempt; looked at again with a tick.
	unstopped bool
	lease     lease
	standing  standing
	bounds    bounds.Book
	reports   reports.Book

	nextJob uint64
	keys    keys.Book
	whose   *whose.Book
	quotas  quotas.Book
	// renicing: how nice jobs are is being ordered.
	renicing bool
	// leastWindow of its users' published jobs, in thousandths of cores, whatever the federation lends.
	leastWindow int64
	home        homejobs.Book
	usage       usage.Book
	pubs        publish.Book
	after       after.Book
	gates       gates.Book
	priorities  priorities.Book
	own         own.Jobs
	cancels     cancelBook
	lend        lend.Book
	changes     changes

	// expelled: the state says that this incarnation is lost; foreign attempts
	// are ended before the site registers again.
	expelled bool
	entering epochEntry
	// handingBack: ended federation attempts are declined, not lost.
	handingBack bool
	// gone: the site has left; the state saying so is no reason to come back.
	gone     bool
	ticks    uint64
	demand   executor.Demand // last told to the handlers
	tallies  *trouble.Tallies
	troubles *trouble.Troubles
}

// New returns the core of a site that has no handlers yet and knows nothing. sealer seals what the site submits.
func New(sealer *seal.Sealer, limits node.Exposure) *Core {
	site := sealer.Whose().Site
	c := &Core{
		site: site, sealer: sealer, nextJob: 1, leastWindow: leastWindow, out: turn.NewOutbox(site),
		keys:  keys.NewBook(),
		whose: whose.NewBook(), quotas: quotas.NewBook(),
		returned: map[executor.ID]bool{}, tallies: trouble.NewTallies(), troubles: trouble.NewTroubles(),
	}
	c.machines = machines.NewSet(limits, &c.now, c.troubles)
	c.unseal = unseal.NewBook(sealer, &c.now)
	c.attempts = attempts.NewBook(site, &c.now, &c.machines, c.unseal.Open)
	c.ahead = ahead.NewBook(&c.out, &c.now)
	c.bounds = bounds.NewBook(&c.out, &c.now)
	c.reports = reports.NewBook(&c.out, &c.attempts)
	c.inputs = inputs.NewBook(&c.now)
	c.usage = usage.NewBook(&c.out, &c.now)
	c.home = homejobs.NewBook(homejobs.Site{
		Name: site, Now: &c.now, Machines: &c.machines, Attempts: &c.attempts, Usage: &c.usage, Tallies: c.tallies,
	})
	c.pubs = publish.NewBook(site, &c.now, &c.out, &c.keys, c.cancels.cancelWaiting, c.cancels.orderBehind,
		c.released)
	c.lend = lend.NewBook(&c.out, &c.machines)
	c.after = after.NewBook(site, &c.now)
	c.gates = c.newGates()
	c.priorities = priorities.NewBook(site, &c.now, &c.out)
	c.own = own.New(site, &c.out, &c.home, &c.pubs, &c.after, &c.lend, &c.usage, c.Alone, c.heldWhy, &c.gates)
	c.cancels = newCancelBook(site, &c.out, &c.home, &c.pubs, &c.after, c.endHeld)
	c.changes = newChanges(&c.out)
	c.entering = epochEntry{site: site, attempts: &c.attempts}
	return c
}

// AddHandler tells the core of a handler before its first event.
func (c *Core) AddHandler(name string, g Guard, t Terms) {
	c.bounds.SetGuard(name, g)
	c.machines.AddHandler(name, t)
}

// LendFiles tells the core, before the first event, that files travel with the tasks of handlers that collect them:
// those of a task of another site may take so many bytes, what it is given and what it leaves together.
func (c *Core) LendFiles(most int64) { c.machines.LendFiles(most) }

// SetRoom tells the core, before the first event, what RoomEvent tells it later.
func (c *Core) SetRoom(bytes int64) { c.machines.SetRoom(bytes) }

// SetEmit has events of home jobs and held ones given to those who read, once they are durable.
func (c *Core) SetEmit(tell func([]node.Event)) {
	c.home.SetEmit(tell)
	c.after.SetEmit(tell)
	c.gates.SetEmit(tell)
}

// SetClock sets the moment of the events that follow.
func (c *Core) SetClock(now Clock) { c.now = now }

// Step takes one event. The events are the paper's five, as they reach a
// broker: 1 SubmitEvent, 2 StateEvent, 3 CapacityEvent, 4 EndedEvent; 5 (a site
// left) arrives through the state.
func (c *Core) Step(ev Event, s StateReader, fx *Effects) {
	switch ev := ev.(type) {
	case SubmitEvent:
		c.submit(ev, s, fx)
	case StateEvent: // settle reconciles
	case JobsEndedEvent:
		c.handleJobsEnded(ev, s, fx)
	case BroughtEvent:
		c.handleBrought(ev, fx)
	case ForeseeEvent:
		c.foresee(ev, s)
	case CapacityEvent:
		c.Capacity(ev)
	case AcceptedEvent:
		c.handleAccepted(ev.ID, fx)
	case UnstoppedEvent:
		if a := c.attempts.Find(ev.ID); a != nil {
			a.Stopping, c.unstopped = false, true
		}
	case DiskEvent:
		c.lend.SetFull(ev.Full)
		c.seen = 0
	case UnsureEvent:
		c.lend.SetUnsure(ev.Why)
		c.seen = 0
	case StartedEvent:
		c.handleStarted(ev)
	case EndedEvent:
		c.handleEnded(ev.ID, ev.Result, fx)
	case PreparingEvent, StagedEvent, UnstagedEvent, CollectedEvent, CollectWaitsEvent, RoomEvent:
		c.stepFiles(ev, fx)
	case RecordEvent:
		fx.Writes = append(fx.Writes, ev.Writes...)
		fx.Replies = append(fx.Replies, ev.Done)
	case RefusedEvent:
		c.handleRefused(ev, fx)
	case KeysEvent:
		c.unseal.Answered(ev.Owner, ev.Answers, ev.Failed, c.examineAgain)
	case ResultEvent:
		if ev.Err == nil { // an error comes only when the broker stops
			c.ahead.Heard(ev.Cmds)
			c.out.HandleResults(ev.Cmds, ev.Results, s, fx)
		}
	case DeliverEvent:
		c.deliver(ev)
	case DrainEvent:
		c.lend.SetDrain(ev.Drain, fx)
		fx.Replies = append(fx.Replies, ev.Done)
	case UserLimitsEvent:
		c.setUserLimits(ev, fx)
	case CancelEvent:
		switch {
		case ev.Tasks.Len() > 0 && c.cancelBefore(ev, s, fx):
		case ev.Tasks.Len() > 0:
			c.cancels.cancelTasks(ev, s, fx)
		default:
			c.cancels.cancel(ev, fx)
		}
	case HoldEvent:
		c.setHold(ev, s, fx)
	case PriorityEvent:
		c.setPriorities(ev, s, fx)
	case LeaseEvent:
		c.handleRenewed(ev, fx)
	case VerdictEvent:
		if c.incarnation != 0 {
			c.changes.proposeLosses(ev)
		}
	case RaiseEvent:
		if c.incarnation != 0 {
			c.changes.proposeRaise(ev)
		}
	case GossipKeyEvent:
		if c.incarnation != 0 {
			c.changes.proposeGossipKey(ev)
		}
	case EpochEvent:
		c.beginEpoch(ev)
	case RegisteredEvent:
		c.handleRegistered(ev, fx)
		c.holdRecovered(s, fx)
		c.countOpenJobs(s)
		c.findGates(s, fx)
	case TickEvent:
		c.tick(s, fx)
	case AskEvent:
		ev(c)
	}
}

// Settle brings journal, handlers and offers in line after all events of a turn.
func (c *Core) Settle(s StateReader, fx *Effects) {
	if !c.homePaused() {
		c.home.Start(c.incarnation != 0, s, fx)
	}
	c.publishUnstarted(s, fx)
	c.followEnds(s, fx)
	c.pubs.Journal(c.Alone(), fx)
	c.home.FlushEvents(fx)
	c.gates.FlushEvents(fx)
	if c.incarnation != 0 {
		c.checkExpelled(s, fx)
	}
	if c.incarnation == 0 {
		c.expel(s, fx)
		return
	}
	c.reconcile(s, fx)
	c.unseal.Ask(s.Index(), fx)
	c.bounds.Declare(c.examineAgain)
	c.publishHeld(s)
	c.pubs.Publish(c.settledBelow)
	c.gates.Settle(s, fx)
	c.priorities.Settle(s, c.isOwn, fx)
	c.reports.SendEnds(s.Version(), func(id executor.ID) { delete(c.returned, id) })
	c.lend.Offer(c.incarnation)
	if !c.gone {
		c.lend.ReportClosure()
	}
	c.out.Flush(fx)
	c.ahead.Sent()
}

// Capacity takes a handler's machines as they are now.
func (c *Core) Capacity(ev CapacityEvent) {
	c.machines.Update(ev.Handler, ev.Machines)
	c.home.MachinesChanged() // some machine may take them now
}

// AwaitAccepted closes ready once no start of an attempt is under way, and reports
// whether the attempt is known; else ready stays as it is.
func (c *Core) AwaitAccepted(id executor.ID, ready chan struct{}) (known bool) {
	return c.attempts.AwaitAccepted(id, ready)
}

// Own answers for the jobs that only this broker knows.
func (c *Core) Own() *own.Jobs { return &c.own }

// Whose returns whose the jobs of this site are; others than the core only ask, and may do so concurrently.
func (c *Core) Whose() *whose.Book { return c.whose }

// WithInputs yields the attempts here that have files.
func (c *Core) WithInputs() iter.Seq[*attempts.Record] {
	return func(yield func(*attempts.Record) bool) {
		for _, a := range c.attempts.All() {
			if len(a.Inputs) > 0 && !yield(&a.Record) {
				return
			}
		}
	}
}

// WithOutputs yields the attempts here that are to leave files, and have not ended.
func (c *Core) WithOutputs() iter.Seq[*attempts.Record] {
	return func(yield func(*attempts.Record) bool) {
		for _, a := range c.attempts.All() {
			if a.Outputs.Wanted() && a.Ended == nil && !yield(&a.Record) {
				return
			}
		}
	}
}

// Lent yields the attempts of other sites' tasks here that have not ended and are not told to.
func (c *Core) Lent() iter.Seq[*attempts.Attempt] {
	return func(yield func(*attempts.Attempt) bool) {
		for _, a := range c.attempts.All() {
			if a.Ended == nil && !a.Collecting && !a.Stopping && !a.IsOwnedBy(c.site) && !yield(a) {
				return
			}
		}
	}
}

// Figures are what the core counts for /metrics.
type Figures struct {
	Attempts, HomeWaiting, Publishing, Keys int
	// HeldByHand are jobs, GatedTasks those that this site's gates hold in the state.
	HeldByHand, GatedTasks int
	AwaitInputs            int // jobs

	Users node.UserTotals
}

// Figures returns what the core counts.
func (c *Core) Figures() Figures {
	users := c.quotas.Totals()
	byHand, gated := c.gates.Totals()
	return Figures{
		HeldByHand: byHand, GatedTasks: gated, AwaitInputs: c.after.AwaitInputs(),
		Attempts: c.attempts.Len(), HomeWaiting: c.home.Waiting(), Publishing: max(c.pubs.Len()-users.HeldJobs, 0),
		Keys: c.keys.Len(), Users: users,
	}
}

// HandlerTallies returns what is counted by handler; it is safe for concurrent use.
func (c *Core) HandlerTallies() *trouble.Tallies { return c.tallies }

// MachineTroubles returns which machines rest, and why; it is safe for concurrent use.
func (c *Core) MachineTroubles() *trouble.Troubles { return c.troubles }

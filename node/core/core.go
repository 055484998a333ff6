package core

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// StateReader is what the core reads of the replicated state; a *fsm.State is one.
type StateReader interface {
	Index() uint64
	Assignment(site string, ref command.AttemptRef) (fsm.Assignment, bool)
	AssignmentsSince(site string, entry uint64) (changed []fsm.Assignment, whole bool)
	SiteChange(site string) uint64
	SiteState(site string) (state fsm.SiteState, incarnation uint64)
	WaitingFits(site string) bool
	AnyFits(spec command.JobSpec) (bool, string)
	Job(id command.JobID) (fsm.JobView, bool)
	Retired(id command.JobID) bool
	Admits(site string, spec *command.JobSpec) command.Code
	node.QuotaReader
	Queue() []fsm.QueueView
	Params() command.Params
	Site(name string) (fsm.SiteView, bool)
}

// Clock is the moment of an event, read by the shell.
type Clock struct {
	Wall time.Time
	Boot int64 // CLOCK_BOOTTIME in nanoseconds
	// Up is how long this process has run, by a clock that nobody sets and that
	// stands still while the machine is suspended.
	Up time.Duration
}

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
	// Register, if set, presents this broker again: it was declared lost.
	Register *Registration
	Demand   *executor.Demand // nil: as before
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
}

// StopEffect has a handler stop an attempt, with why for people.
type StopEffect struct {
	HandlerID
	Why string
}

// Core is the broker's state and rules without any input or output: events in,
// effects out. One goroutine owns it.
type Core struct {
	site   string
	limits node.Exposure
	out    outbox
	// incarnation is 0 until this start of the broker has been registered;
	// before that it starts nothing for the federation and offers nothing.
	incarnation uint64

	// machines is what the handlers have, by name; order holds the names sorted.
	machines map[string]machine
	order    []string
	// terms are those of each handler, by its name; one without any has no labels.
	terms  map[string]Terms
	closed closureBook
	// guards say how each handler's foreign attempts end, by its name.
	guards map[string]Guard

	// attempts is everything handed to a handler and not settled yet.
	// Invariant: each has a record in the journal.
	attempts map[executor.ID]*attempt
	// used counts every attempt from begin until it ended or was dropped.
	used occupancy
	last jobMemory
	// seen is the entry up to which assignments were reconciled; 0: all are looked
	// at next. again are single ones to be looked at next.
	seen  uint64
	again []command.AttemptRef

	nextJob uint64
	home    homeBook
	pubs    publicationBook
	cancels cancelBook
	keys    keys.Book
	offers  offerBook
	usage   usageBook
	started []command.StartedAttempt // reported with the next tick
	ends    []command.Ended          // of this turn
	// returned are assignments whose Decline, or end without a start, is being
	// ordered. Invariant: none of them has a pledge.
	returned map[executor.ID]bool
	// namedLost are the attempts that the registration under way gives up.
	namedLost map[command.AttemptRef]bool
	troubles  *trouble.Troubles
	// full says why this site has no room on its disk; nil: it has.
	full error
	// unstopped: a handler failed to stop an attempt; looked at again with a tick.
	unstopped bool
	lease     lease
	pledges   pledgeBook
	judging   map[coord.Renewal]bool // verdicts being ordered
	raising   bool                   // a newer apply version is being ordered
	settings  int                    // changes of parameters that are being ordered
	// expelled: the state says that this incarnation is lost; foreign attempts
	// are ended before the site registers again.
	expelled bool
	entering uint64 // an epoch that the site is not ready for, 0 = none; see epoch.go
	drain    Drain
	closing  bool // the site offers nothing any more
	// handingBack: ended federation attempts are declined, not lost.
	handingBack bool
	// gone: the site has left; the state saying so is no reason to come back.
	gone    bool
	ticks   uint64
	demand  executor.Demand // last told to the handlers
	now     Clock
	tallies *trouble.Tallies
	// told are events of home jobs, on their way to those who read; tell gives them
	// there, nil = nobody reads.
	told []node.Event
	emit func([]node.Event)
}

// attempt is one run of a task on one of this site's machines.
type attempt struct {
	attemptRecord
	key     []byte // see recordKey
	handler string
	begun   int64 // CLOCK_BOOTTIME in this life of the broker, 0 = in an earlier one
	// accepted: the handler has it, so that it can be told to stop.
	accepted bool
	// stopping: the handler was told to stop it. due: it is to be, with dueWhy,
	// once it has it.
	stopping, due bool
	dueWhy        string
	// fenced: the state no longer knows it, its end is of no interest.
	fenced bool
	ended  *executor.Result
	// waiters are closed once the handler has it, or never will.
	waiters []chan struct{}
}

// recordKey returns the key of its record in the journal.
func (a *attempt) recordKey() []byte {
	if a.key == nil {
		a.key = []byte(a.ID.String())
	}
	return a.key
}

// releaseWaiters tells those who wait that no start is under way any more.
func (a *attempt) releaseWaiters() {
	for _, w := range a.waiters {
		close(w)
	}
	a.waiters = nil
}

// New returns the core of a site that has no handlers yet and knows nothing.
func New(site string, limits node.Exposure) *Core {
	return &Core{
		site: site, limits: limits, nextJob: 1,
		machines: map[string]machine{}, guards: map[string]Guard{}, terms: map[string]Terms{},
		attempts: map[executor.ID]*attempt{},
		used:     newOccupancy(),
		home:     homeBook{jobs: map[uint64]*homeJob{}, unsure: map[uint64]bool{}},
		pubs:     publicationBook{byJob: map[uint64]*publication{}},
		cancels:  cancelBook{waiting: map[uint64][]func(error){}, places: map[uint64]string{}},
		keys:     keys.NewBook(),
		returned: map[executor.ID]bool{},
		judging:  map[coord.Renewal]bool{},
		tallies:  trouble.NewTallies(),
		troubles: trouble.NewTroubles(),
		usage:    usageBook{most: maxUnreported},
		pledges:  pledgeBook{byID: map[executor.ID]*pledge{}},
		out:      outbox{site: site, inflight: map[uint64]waitingCommand{}},
	}
}

// AddHandler tells the core of a handler before its first event.
func (c *Core) AddHandler(name string, g Guard, t Terms) { c.guards[name], c.terms[name] = g, t }

// SetEmit has events of home jobs given to those who read, once they are durable.
func (c *Core) SetEmit(tell func([]node.Event)) { c.emit = tell }

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
	case CapacityEvent:
		c.Capacity(ev)
	case AcceptedEvent:
		c.handleAccepted(ev.ID, fx)
	case UnstoppedEvent:
		if a := c.attempts[ev.ID]; a != nil {
			a.stopping, c.unstopped = false, true
		}
	case DiskEvent:
		c.full, c.seen = ev.Full, 0
	case StartedEvent:
		c.handleStarted(ev)
	case EndedEvent:
		c.handleEnded(ev.ID, ev.Result, fx)
	case RefusedEvent:
		c.handleRefused(ev, fx)
	case ResultEvent:
		c.out.handleResults(ev, s, fx)
	case DrainEvent:
		c.setDrain(ev.Drain, fx)
		fx.Replies = append(fx.Replies, ev.Done)
	case CancelEvent:
		if ev.Tasks.Len() > 0 {
			c.cancelTasks(ev, s, fx)
		} else {
			c.cancel(ev, fx)
		}
	case LeaseEvent:
		c.handleRenewed(ev, fx)
	case VerdictEvent:
		c.proposeLosses(ev)
	case RaiseEvent:
		c.proposeRaise(ev)
	case EpochEvent:
		c.beginEpoch(ev)
	case RegisteredEvent:
		c.handleRegistered(ev, fx)
	case TickEvent:
		c.tick(s, fx)
	case AskEvent:
		ev(c)
	}
}

// Settle brings journal, handlers and offers in line after all events of a turn.
func (c *Core) Settle(s StateReader, fx *Effects) {
	c.startHome(s, fx)
	c.publishUnstarted(s, fx)
	c.journalPublications(fx)
	c.flushEvents(fx)
	if c.incarnation != 0 {
		c.checkExpelled(s)
	}
	if c.incarnation == 0 {
		c.expel(s, fx)
		return
	}
	c.reconcile(s, fx)
	c.declareBounds()
	c.publish()
	c.reportEnds()
	c.offer()
	c.reportClosure()
	c.out.flush(fx)
}

// attemptRecord is synced before the attempt is started anywhere: a record
// without a supervisor or a result is settled as lost, never started again.
type attemptRecord struct {
	ID      executor.ID        `json:"id"`
	Home    bool               `json:"home,omitempty"`
	Machine string             `json:"machine"`
	Need    executor.Resources `json:"need"`
	// Bounded: it ends by a bound that the federation knows, not by the lease.
	Bounded bool `json:"bounded,omitempty"`
	// AssignedMs is when this broker first saw the assignment, unix milliseconds.
	AssignedMs int64 `json:"assigned_ms"`
}

// Recorded reports whether anything of the turn waits for the journal.
func (fx *Effects) Recorded() bool {
	return len(fx.Writes)+len(fx.Starts)+len(fx.Replies)+len(fx.Forgets)+len(fx.Propose) > 0
}

// AwaitAccepted closes ready once no start of an attempt is under way, and reports
// whether the attempt is known; else ready stays as it is.
func (c *Core) AwaitAccepted(id executor.ID, ready chan struct{}) (known bool) {
	a := c.attempts[id]
	switch {
	case a == nil:
		return false
	case !a.accepted && a.ended == nil:
		a.waiters = append(a.waiters, ready)
	default:
		close(ready)
	}
	return true
}

// Figures are what the core counts for /metrics.
type Figures struct{ Attempts, HomeWaiting, Publishing, Keys int }

// Figures returns what the core counts.
func (c *Core) Figures() Figures {
	return Figures{Attempts: len(c.attempts), HomeWaiting: len(c.home.waiting), Publishing: len(c.pubs.byJob), Keys: c.keys.Len()}
}

// HandlerTallies returns what is counted by handler; it is safe for concurrent use.
func (c *Core) HandlerTallies() *trouble.Tallies { return c.tallies }

// MachineTroubles returns which machines rest, and why; it is safe for concurrent use.
func (c *Core) MachineTroubles() *trouble.Troubles { return c.troubles }

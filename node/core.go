package node

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// stateReader is what the core reads of the replicated state.
type stateReader interface {
	Index() uint64
	Assignment(site string, ref fsm.AttemptRef) (fsm.Assignment, bool)
	AssignmentsSince(site string, entry uint64) (changed []fsm.Assignment, whole bool)
	SiteChange(site string) uint64
	SiteState(site string) (state fsm.SiteState, incarnation uint64)
	WaitingFits(site string) bool
	AnyFits(spec fsm.JobSpec) (bool, string)
	Selects() bool
	Tells() bool
	CanSelect() error
	Job(id fsm.JobID) (fsm.JobView, bool)
	Retired(id fsm.JobID) bool
	Admits(site string, spec *fsm.JobSpec) fsm.Code
	quotaReader
	Queue() []fsm.QueueView
	Params() fsm.Params
	Site(name string) (fsm.SiteView, bool)
}

// clock is the moment of an event, read by the shell.
type clock struct {
	wall time.Time
	boot int64 // CLOCK_BOOTTIME in nanoseconds
	// up is how long this process has run, by a clock that nobody sets and that
	// stands still while the machine is suspended.
	up time.Duration
}

// effects are what the shell must do after a step: stops, fences and commands
// that only say what has happened at once; then sync the writes; then the rest.
type effects struct {
	writes  []write
	starts  []startEffect
	stops   []stopEffect
	forgets []handlerID
	// propose stands in one entry, in order.
	propose []fsm.Command
	replies []func()
	// publishes: a publication is among the writes.
	publishes bool
	// fence, if not 0, is the new CLOCK_BOOTTIME fence of all foreign attempts.
	fence int64
	// register, if set, presents this broker again: it was declared lost.
	register *registration
	demand   *executor.Demand // nil: as before
}

type handlerID struct {
	handler string
	id      executor.ID
}

type startEffect struct {
	handlerID
	task executor.Task
}

type stopEffect struct {
	handlerID
	why string
}

// core is the broker's state and rules without any input or output: events in,
// effects out. One goroutine owns it.
type core struct {
	site   string
	limits Exposure
	out    outbox
	// incarnation is 0 until this start of the broker has been registered;
	// before that it starts nothing for the federation and offers nothing.
	incarnation uint64

	// machines is what the handlers have, by name; order holds the names sorted.
	machines map[string]machine
	order    []string
	// terms are those of each handler, by its name; one without any has no labels.
	terms map[string]terms
	// marking: the state has labels and slots, so offers have them, too.
	marking bool
	// telling: commands may say where a cancel was asked, and why the site lends nothing.
	telling bool
	closed  closureBook
	// guards say how each handler's foreign attempts end, by its name.
	guards map[string]guard

	// attempts is everything handed to a handler and not settled yet.
	// Invariant: each has a record in the journal.
	attempts map[executor.ID]*attempt
	// used counts every attempt from begin until it ended or was dropped.
	used occupancy
	last jobMemory
	// seen is the entry up to which assignments were reconciled; 0: all are looked
	// at next. again are single ones to be looked at next.
	seen  uint64
	again []fsm.AttemptRef

	nextJob uint64
	home    homeBook
	pubs    publicationBook
	cancels cancelBook
	keys    keyBook
	offers  offerBook
	usage   usageBook
	started []fsm.StartedAttempt // reported with the next tick
	ends    []fsm.Ended          // of this turn
	// returned are assignments whose Decline, or end without a start, is being
	// ordered. Invariant: none of them has a pledge.
	returned map[executor.ID]bool
	// namedLost are the attempts that the registration under way gives up.
	namedLost map[fsm.AttemptRef]bool
	troubles  *troubles
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
	drain    drain
	closing  bool // the site offers nothing any more
	// handingBack: ended federation attempts are declined, not lost.
	handingBack bool
	// gone: the site has left; the state saying so is no reason to come back.
	gone    bool
	ticks   uint64
	demand  executor.Demand // last told to the handlers
	now     clock
	tallies *tallies
	// told are events of home jobs, on their way to the feed (nil in tests).
	told []Event
	feed *Feed
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

// recordKey is the key of its record in the journal.
func (a *attempt) recordKey() []byte {
	if a.key == nil {
		a.key = []byte(a.ID.String())
	}
	return a.key
}

// settled tells those who wait that no start is under way any more.
func (a *attempt) settled() {
	for _, w := range a.waiters {
		close(w)
	}
	a.waiters = nil
}

func newCore(site string, limits Exposure) *core {
	return &core{
		site: site, limits: limits, nextJob: 1,
		machines: map[string]machine{}, guards: map[string]guard{}, terms: map[string]terms{},
		attempts: map[executor.ID]*attempt{},
		used:     newOccupancy(),
		home:     homeBook{jobs: map[uint64]*homeJob{}, unsure: map[uint64]bool{}},
		pubs:     publicationBook{byJob: map[uint64]*publication{}},
		cancels:  cancelBook{waiting: map[uint64][]func(error){}, places: map[uint64]string{}},
		keys:     newKeyBook(),
		returned: map[executor.ID]bool{},
		judging:  map[coord.Renewal]bool{},
		tallies:  newTallies(),
		troubles: newTroubles(),
		pledges:  pledgeBook{byID: map[executor.ID]*pledge{}},
		out:      outbox{site: site, inflight: map[uint64]waitingCommand{}},
	}
}

// step takes one event. The events are the paper's five, as they reach a
// broker: 1 submitEvent, 2 stateEvent, 3 capacityEvent, 4 endedEvent; 5 (a site
// left) arrives through the state.
func (c *core) step(ev event, s stateReader, fx *effects) {
	switch ev := ev.(type) {
	case submitEvent:
		c.submit(ev, s, fx)
	case stateEvent: // settle reconciles
	case capacityEvent:
		c.capacity(ev)
	case acceptedEvent:
		c.accepted(ev.id, fx)
	case unstoppedEvent:
		if a := c.attempts[ev.id]; a != nil {
			a.stopping, c.unstopped = false, true
		}
	case diskEvent:
		c.full, c.seen = ev.full, 0
	case startedEvent:
		c.hasStarted(ev)
	case endedEvent:
		c.hasEnded(ev.id, ev.result, fx)
	case refusedEvent:
		c.refused(ev, fx)
	case resultEvent:
		c.out.done(ev, s, fx)
	case drainEvent:
		c.setDrain(ev.drain, fx)
		fx.replies = append(fx.replies, ev.done)
	case cancelEvent:
		if ev.tasks.Len() > 0 {
			c.cancelTasks(ev, s, fx)
		} else {
			c.cancel(ev, fx)
		}
	case leaseEvent:
		c.renewed(ev, fx)
	case verdictEvent:
		c.verdict(ev)
	case raiseEvent:
		c.raise(ev)
	case epochEvent:
		c.enter(ev)
	case registeredEvent:
		c.registered(ev, fx)
	case tickEvent:
		c.tick(s, fx)
	case askEvent:
		ev(c)
	}
}

// settle brings journal, handlers and offers in line after all events of a turn.
func (c *core) settle(s stateReader, fx *effects) {
	c.startHome(s, fx)
	c.publishUnstarted(s, fx)
	c.journalPublications(fx)
	c.passEvents(fx)
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
	c.marking, c.telling = s.Selects(), s.Tells()
	c.offer()
	c.tellClosed()
	c.out.flush(fx)
}

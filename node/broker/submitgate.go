package broker

import (
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core"
)

// submitGate holds submissions back while a publication is on its way: all
// that come meanwhile share the next one. A publication costs a sync, a command,
// a signature that every member verifies, and an answer of the order, whatever the
// number of its jobs; without the gate each turn of a busy loop would make its own.
//
// A publication is on its way while it is being synced, and then until its result comes or its flight is over. Clients
// that are answered tend to submit again at once, so what is held waits a little for as many more, see landed.
//
// It also holds them back after the broker's start, until the federation has
// taken it in: the data may turn out to be an old copy, with numbers and keys
// that were given out before. A site that finds no quorum goes on alone after
// startPatience.
type submitGate struct {
	early   bool // nobody has taken this broker in since its start
	syncing bool
	held    []core.Event
	jobs    int       // of held
	since   time.Time // when the first of held came

	awaited command.ID    // the newest publication's last command; zero: its result has come
	sent    time.Time     // when it was made
	calls   int           // submissions that it holds
	flight  time.Duration // for which submissions wait for its result at most
	until   time.Time     // submissions are held until then,
	enough  int           // or until so many are held; 0: any number
	alarm   *time.Timer
	set     time.Time // what the alarm was set to
}

const (
	// startPatience is longer than it takes to elect a leader and to register.
	startPatience = 5 * time.Second
	// nearFlight is longer than an entry takes on a LAN, also on processors with much other work. Over a WAN
	// submissions keep farFlight, as bundles and entries do there: an entry takes a hundred times as long.
	nearFlight = 50 * time.Millisecond
	farFlight  = 3 * time.Millisecond
	// maxGather bounds how long what is held waits for those who were answered just now.
	maxGather = 2 * time.Millisecond
	// manyJobs wait for no others.
	manyJobs = 256
)

// newSubmitGate returns the gate of a broker that has just started; far says that members are far apart.
func newSubmitGate(far bool) submitGate {
	g := submitGate{early: true, flight: nearFlight, alarm: time.NewTimer(time.Hour)}
	if far {
		g.flight = farFlight
	}
	g.alarm.Stop()
	return g
}

// pass keeps the submissions of evs back while the gate is closed. A lease is
// the sign that the federation has taken this broker in.
func (g *submitGate) pass(evs []core.Event) []core.Event {
	for _, ev := range evs {
		g.observe(ev)
	}
	if len(g.held) == 0 && !g.isClosed() {
		return evs
	}
	evs = slices.DeleteFunc(evs, func(ev core.Event) bool {
		submit, ok := ev.(core.SubmitEvent)
		if ok {
			if len(g.held) == 0 {
				g.since = time.Now()
			}
			g.held = append(g.held, ev)
			g.jobs += len(submit.Reqs)
		}
		return ok
	})
	return g.release(evs)
}

func (g *submitGate) observe(ev core.Event) {
	switch ev := ev.(type) {
	case core.LeaseEvent:
		g.early = false
	case core.ResultEvent:
		if g.awaits(ev.Cmds) {
			g.landed()
		}
	}
}

// awaits reports whether the newest publication's last command is among those that have results.
func (g *submitGate) awaits(cmds []command.Command) bool {
	return g.awaited != (command.ID{}) &&
		slices.ContainsFunc(cmds, func(c command.Command) bool { return c.ID == g.awaited })
}

// publishes notes that the submissions among evs are being synced, and what will be proposed then: nothing of jobs
// that are held.
func (g *submitGate) publishes(evs []core.Event, cmds []command.Command) {
	g.syncing = true
	sent := command.ID{}
	for i := range cmds {
		if cmds[i].Body.Kind() == command.KindSubmit {
			sent = cmds[i].ID
		}
	}
	calls := 0
	for _, ev := range evs {
		if _, submit := ev.(core.SubmitEvent); submit {
			calls++
		}
	}
	if sent == (command.ID{}) || calls == 0 { // a job that waited for others: nobody waits for its answer
		return
	}
	g.awaited, g.calls, g.sent, g.enough = sent, calls, time.Now(), 0
	g.until = g.sent.Add(g.flight)
}

// landed notes the newest publication's result. Who was answered may be back soon: what is held waits for as many,
// for a quarter of the time that they have waited at most.
func (g *submitGate) landed() {
	now := time.Now()
	g.awaited = command.ID{}
	g.until, g.enough = now.Add(min(now.Sub(g.sent)/4, maxGather)), len(g.held)+g.calls
}

// open ends the wait for a sync.
func (g *submitGate) open(evs []core.Event) []core.Event {
	g.syncing = false
	return g.release(evs)
}

// openAtStart ends the wait for the federation.
func (g *submitGate) openAtStart(evs []core.Event) []core.Event {
	g.early = false
	return g.release(evs)
}

// release lets the held submissions go, in their order, if nothing closes the
// gate. They stand after what has come so far and before what comes later.
func (g *submitGate) release(evs []core.Event) []core.Event {
	if g.isClosed() {
		return evs
	}
	evs = append(evs, g.held...)
	clear(g.held)
	g.held, g.jobs = g.held[:0], 0
	return evs
}

// isClosed reports whether submissions are held. If only time is to pass, it sees to the alarm.
func (g *submitGate) isClosed() bool {
	if g.early || g.syncing {
		return true
	}
	if g.jobs >= manyJobs || g.enough > 0 && len(g.held) >= g.enough {
		return false
	}
	until := g.until
	if most := g.since.Add(g.flight + maxGather); len(g.held) > 0 && most.Before(until) {
		until = most // whatever is published meanwhile
	}
	left := time.Until(until)
	if left > 0 && g.set != until {
		g.set = until
		g.alarm.Reset(left)
	}
	return left > 0
}

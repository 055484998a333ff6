package coordtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// grant is one call of a Grantor.
type grant struct {
	coord.Renewal
	term      uint64
	confirmed bool
}

// grantor records what it is asked, and says yes unless told otherwise. Its
// methods wait at the gates: a leader that is paused at that point.
type grantor struct {
	mu                sync.Mutex
	calls             []grant
	gone              []string // sites whose connections have ended
	refuse, drop      bool
	received, confirm *gate
}

var (
	_ coord.Grantor      = (*grantor)(nil)
	_ coord.Disconnected = (*grantor)(nil)
)

// Disconnected implements coord.Disconnected.
func (x *grantor) Disconnected(site string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone = append(x.gone, site)
}

// lost reports whether a site's connection has ended.
func (x *grantor) lost(site string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.gone, site)
}

// Received implements coord.Grantor.
func (x *grantor) Received(r coord.Renewal, term uint64) bool {
	x.record(grant{r, term, false})
	x.received.pass()
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.refuse
}

// Confirmed implements coord.Grantor.
func (x *grantor) Confirmed(r coord.Renewal, term uint64) bool {
	x.record(grant{r, term, true})
	x.confirm.pass()
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.drop
}

func (x *grantor) record(c grant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls = append(x.calls, c)
}

// seen returns the calls so far and forgets them.
func (x *grantor) seen() []grant {
	x.mu.Lock()
	defer x.mu.Unlock()
	calls := x.calls
	x.calls = nil
	return calls
}

// gate stops its first visitor until it is opened, at the latest when the case
// ends; nil stops nobody.
type gate struct {
	once    sync.Once
	reached chan struct{}
	opened  chan struct{}
	open    func()
}

func newGate(g *group) *gate {
	x := &gate{reached: make(chan struct{}), opened: make(chan struct{})}
	x.open = sync.OnceFunc(func() { close(x.opened) })
	g.t.Cleanup(x.open) // a case that failed leaves nobody behind it
	return x
}

func (x *gate) pass() {
	if x != nil {
		x.once.Do(func() {
			close(x.reached)
			<-x.opened
		})
	}
}

// grantors opens three sites, each with a grantor, before what is asked of it
// may change.
func grantors(g *group) map[string]*grantor {
	g.t.Helper()
	three(g)
	all := map[string]*grantor{}
	for s, m := range g.members {
		all[s] = &grantor{}
		m.log.Grant(all[s])
	}
	return all
}

// oneGate stops the first renewal that arrives, wherever: a busy machine may have another leader elected meanwhile.
func oneGate(g *group, all map[string]*grantor) *gate {
	received := newGate(g)
	for _, x := range all {
		x.received = received
	}
	return received
}

func (m *member) renewal() coord.Renewal {
	return coord.Renewal{Site: m.site, Incarnation: m.inc}
}

// renew starts a renewal.
func (g *group) renew(ctx context.Context, m *member) chan error {
	end := make(chan error, 1)
	go func() { end <- m.log.Renew(ctx, m.renewal()) }()
	return end
}

func (g *group) await(ch <-chan struct{}, what string) {
	g.t.Helper()
	select {
	case <-ch:
	case <-g.ctx().Done():
		g.t.Fatalf("never: %s", what)
	}
}

// granted wants the renewal granted, by the leader of now, at last.
func (g *group) granted(all map[string]*grantor, m *member, err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatalf("renew at %s: %v", m.site, err)
	}
	lead := g.lead()
	term := lead.log.Status().Term
	calls := all[lead.site].seen()
	if n := len(calls); n < 2 || calls[n-1] != (grant{m.renewal(), term, true}) ||
		calls[n-2] != (grant{m.renewal(), term, false}) {
		g.t.Errorf("renewed at %s in term %d of leader %s, which was asked %v", m.site, term, lead.site, calls)
	}
}

func renewGranted(t *testing.T, g *group) {
	all := grantors(g)
	lead := g.lead()
	for _, m := range g.members {
		g.granted(all, m, m.log.Renew(g.ctx(), m.renewal()))
	}
	for s, x := range all {
		if calls := x.seen(); s != lead.site && len(calls) > 0 {
			t.Errorf("%s does not lead and was asked %v", s, calls)
		}
	}
}

func renewRefused(t *testing.T, g *group) {
	three(g)
	lead := g.lead()
	refused := func(what string) {
		t.Helper()
		for _, m := range []*member{lead, g.follower()} {
			err := m.log.Renew(g.ctx(), m.renewal())
			if !errors.Is(err, coord.ErrRefused) || !strings.Contains(err.Error(), "leader "+lead.site) {
				t.Errorf("%s, at %s: %v", what, m.site, err)
			}
		}
	}
	refused("without a grantor")
	x := &grantor{refuse: true}
	lead.log.Grant(x)
	refused("refused at receipt")
	if slices.ContainsFunc(x.seen(), func(c grant) bool { return c.confirmed }) {
		t.Error("a refused renewal was confirmed")
	}
	x = &grantor{drop: true}
	lead.log.Grant(x)
	refused("dropped at sending")
	lead.log.Grant(&grantor{})
	err := lead.log.Renew(g.ctx(), g.follower().renewal())
	if !errors.Is(err, coord.ErrRefused) {
		t.Errorf("a renewal for another site: %v", err)
	}
}

// renewApplies: a site starts attempts after a renewal, so it must know what had been decided.
func renewApplies(t *testing.T, g *group) {
	all := grantors(g)
	lead, m := g.lead(), g.follower()
	x := all[lead.site]
	x.confirm = newGate(g)
	g.c.Lag(m.site)
	g.propose(lead, "before the renewal")
	end := g.renew(g.ctx(), m)
	select {
	case <-x.confirm.reached:
	case <-time.After(2 * still): // it lost the leadership first: it asks when it is healed
	}
	x.confirm.open()
	if count(m, "before the renewal") == 0 && len(end) > 0 {
		t.Error("renewed before it was applied here what was committed before")
	}
	g.c.Heal(m.site)
	if err := <-end; err != nil || count(m, "before the renewal") != 1 {
		t.Errorf("renewed with %d of 1 applied: %v", count(m, "before the renewal"), err)
	}
}

// renewDeposed: the leader is paused between receipt and confirmation, and deposed meanwhile:
// it must not grant what the new leader does not know of.
func renewDeposed(t *testing.T, g *group) {
	all := grantors(g)
	old := g.lead()
	term := old.log.Status().Term
	x := all[old.site]
	received := oneGate(g, all)
	end := g.renew(g.ctx(), old)
	g.await(received.reached, "the renewal arrives")
	g.c.Cut(old.site)
	for _, m := range g.members {
		if m != old {
			g.status(m, "another leader", func(s coord.Status) bool { return s.Lead != "" && s.Lead != old.site })
		}
	}
	received.open()
	short, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := old.log.Renew(short, old.renewal()); err == nil {
		t.Error("renewed where no leader can be reached")
	}
	g.c.Heal(old.site)
	err := <-end
	for _, c := range x.seen() {
		if c.confirmed && c.term == term {
			t.Errorf("granted in term %d, which had ended", term)
		}
		x.record(c)
	}
	g.granted(all, old, err)
}

// renewFormerLead: the leader is paused when it has confirmed and is about to answer: its answer
// comes when the asker knows a later leader, which must be asked again.
func renewFormerLead(_ *testing.T, g *group) {
	all := grantors(g)
	m := g.follower()
	x := all[g.lead().site]
	x.confirm = newGate(g)
	end := g.renew(g.ctx(), m)
	g.await(x.confirm.reached, "the renewal is confirmed")
	g.c.MoveLead(g.t)
	before := g.lead()
	g.status(m, "the new leader", func(s coord.Status) bool { return s.Lead == before.site })
	x.confirm.open()
	g.granted(all, m, <-end)
}

func renewEnds(t *testing.T, g *group) {
	all := grantors(g)
	m := g.follower()
	g.c.Cut(m.site)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := m.log.Renew(short, m.renewal()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that ended: %v", err)
	}
	g.c.Heal(m.site)
	g.granted(all, m, m.log.Renew(g.ctx(), m.renewal()))

	received := oneGate(g, all)
	end := g.renew(g.ctx(), m)
	g.await(received.reached, "the renewal arrives")
	if err := m.log.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	received.open()
	if err := <-end; !errors.Is(err, coord.ErrClosed) {
		t.Errorf("closed in mid-renewal: %v", err)
	}
	if err := m.log.Renew(g.ctx(), m.renewal()); !errors.Is(err, coord.ErrClosed) {
		t.Errorf("renew after close: %v", err)
	}
}

// renewerEnds: the leader hears at once that a site which renewed may have ended.
func renewerEnds(t *testing.T, g *group) {
	all := grantors(g)
	m := g.follower()
	g.granted(all, m, m.log.Renew(g.ctx(), m.renewal()))
	if err := m.log.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx := g.ctx(); ; {
		for _, x := range all {
			if x.lost(m.site) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the leader was not told that %s has ended", m.site)
		}
	}
}

func demote(t *testing.T, g *group) {
	a, b, c := three(g)
	lead, m := g.lead(), g.follower()
	if err := lead.log.Demote(g.ctx(), m.site); !errors.Is(err, coord.ErrRefused) {
		t.Errorf("demoting another site: %v", err)
	}
	votes := func(of *member, yes bool) {
		t.Helper()
		g.status(of, "the right voters", func(s coord.Status) bool {
			return slices.Contains(s.Voters, of.site) == yes && slices.Contains(s.Members, of.site)
		})
	}
	for range 2 {
		if err := m.log.Demote(g.ctx(), m.site); err != nil {
			t.Fatal(err)
		}
		votes(m, false)
	}
	g.propose(m, "without a vote")
	g.awaitSameEntry(a, b, c)
	m.log.Stand()
	votes(m, true)

	// The leader hands over first; a restart makes it stand again.
	if err := lead.log.Demote(g.ctx(), lead.site); err != nil {
		t.Fatal(err)
	}
	votes(lead, false)
	if now := g.lead(); now == lead {
		t.Errorf("%s leads without a vote", lead.site)
	}
	g.propose(lead, "follows")
	if err := lead.log.Close(); err != nil {
		t.Fatal(err)
	}
	lead.m = NewMachine()
	lead.log = g.c.Open(t, lead.site, lead.m)
	votes(lead, true)
	g.awaitSameEntry(a, b, c)
}

func demoteLast(t *testing.T, g *group) {
	g.open("a")
	a := g.members["a"]
	if err := a.log.Demote(g.ctx(), "a"); !errors.Is(err, coord.ErrRefused) {
		t.Errorf("demoting the only voter: %v", err)
	}
	g.propose(a, "goes on")
}

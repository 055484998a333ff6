package coordtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Cluster is one group of a backend under test. Faults act at once; they are
// undone by Heal or the end of the test.
type Cluster interface {
	// Open starts a site, the first of a cluster as its founder, or starts it
	// again on what its storage holds. Once three are open, all are voters, if
	// the backend has voters.
	Open(t *testing.T, site string, m coord.Machine) coord.Log
	// Cut severs a site from all others.
	Cut(site string)
	// Lag lets a site send to the leader but keeps entries from it.
	Lag(site string)
	// Heal undoes Cut and Lag.
	Heal(site string)
	// MoveLead makes another member the leader.
	MoveLead(t *testing.T)
	// LoseAnswer loses the answer to the site's next forwarded call, after the
	// leader has ordered it.
	LoseAnswer(site string)
	// Compact makes every running member forget the entries before now, so
	// that one who lacks them needs a snapshot.
	Compact(t *testing.T)
	// Idle lets the time of an idle entry pass, or returns at once if it does
	// by itself.
	Idle()
}

// Factory makes an empty cluster that ends with the test.
type Factory func(t *testing.T) Cluster

// Patience bounds every wait of the suite, far above what a busy machine needs.
const Patience = time.Minute

// still is how long the suite looks whether something stays as it is.
const still = time.Second

// Run shows that a backend keeps the contract of coord.Log.
func Run(t *testing.T, f Factory) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *group)
	}{
		{"TotalOrder", totalOrder},
		{"CallsStayTogether", callsStayTogether},
		{"Duplicates", duplicates},
		{"RegisterTwice", registerTwice},
		{"LostAnswer", lostAnswer},
		{"LeadChange", leadChange},
		{"CloseInMidProposal", closeInMidProposal},
		{"CloseIsIdempotent", closeIsIdempotent},
		{"Context", contexts},
		{"Stale", stale},
		{"SyncIsCurrent", syncIsCurrent},
		{"SnapshotCatchesUp", snapshotCatchesUp},
		{"SnapshotSettlesPending", snapshotSettlesPending},
		{"RestartKeepsEverything", restartKeepsEverything},
		{"TooLarge", tooLarge},
		{"Undecodable", undecodable},
		{"SiteLostIsNeverRetried", siteLost},
		{"IdleTime", idleTime},
		{"WorkGoesOn", workGoesOn},
		{"Remove", remove},
		{"RenewGranted", renewGranted},
		{"RenewRefused", renewRefused},
		{"RenewApplies", renewApplies},
		{"RenewDeposed", renewDeposed},
		{"RenewFormerLead", renewFormerLead},
		{"RenewEnds", renewEnds},
		{"RenewerEnds", renewerEnds},
		{"Demote", demote},
		{"DemoteLast", demoteLast},
		{"UnfitHandsOver", unfitHandsOver},
		{"UnfitLeadsAlone", unfitLeadsAlone},
		{"HTTPBetweenMembers", httpBetweenMembers},
		{"ToldAnotherHistory", toldAnotherHistory},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of it waits: for elections, disks, and a lease to end
			c.run(t, &group{t: t, c: f(t), members: map[string]*member{}})
		})
	}
}

// group is a cluster with its members.
type group struct {
	t       *testing.T
	c       Cluster
	members map[string]*member
}

// member is a site as its broker would use it.
type member struct {
	site string
	log  coord.Log
	m    *Machine
	inc  uint64

	mu   sync.Mutex
	seq  uint64
	open map[uint64]bool // numbers given out whose result is not known
}

func (g *group) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	g.t.Cleanup(cancel)
	return ctx
}

func boot(site string, n byte) (b [16]byte) {
	copy(b[:], site)
	b[15] = n
	return b
}

// open starts sites and registers them.
func (g *group) open(sites ...string) {
	g.t.Helper()
	for _, s := range sites {
		m := &member{site: s, m: NewMachine(), open: map[uint64]bool{}}
		m.log = g.c.Open(g.t, s, m.m)
		g.members[s] = m
		g.register(m, 1)
	}
}

func (g *group) register(m *member, n byte) {
	g.t.Helper()
	r, err := m.log.Propose(g.ctx(), registration(m.site, n))
	if err != nil || len(r) != 1 || r[0].Code != command.OK {
		g.t.Fatalf("register %s: %v %v", m.site, r, err)
	}
	m.inc, m.seq = r[0].Incarnation, 0
	clear(m.open)
}

// Node returns the node id that the suite registers a site with.
func Node(site string) [16]byte { return boot(site, 0) }

// Registration returns a command that the suite's machine takes from a site at any time.
func Registration(site string) command.Command { return registration(site, 1) }

func registration(site string, n byte) command.Command {
	return command.Command{
		ID:   command.ID{Site: site},
		Body: &command.Register{Node: Node(site), Boot: boot(site, n), HTTP: "h:1", Peer: "p:1", MaxVersion: 1},
	}
}

func three(g *group) (a, b, c *member) {
	g.t.Helper()
	g.open("a", "b", "c")
	return g.members["a"], g.members["b"], g.members["c"]
}

// next makes a command with a new id.
func (m *member) next(text string) command.Command {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	m.open[m.seq] = true
	return command.Command{
		ID:   command.ID{Site: m.site, Incarnation: m.inc, Seq: m.seq},
		Body: &command.Addresses{HTTP: text},
	}
}

// settled notes that the command's result is known.
func (m *member) settled(cmd command.Command) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, cmd.ID.Seq)
}

// ack returns the number up to which all results are known: a command that claims
// more makes an older one stale that is still on its way.
func (m *member) ack() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	low := m.seq + 1
	for n := range m.open {
		low = min(low, n)
	}
	return low - 1
}

// propose proposes a text until it is executed.
func (g *group) propose(m *member, text string) command.Result {
	g.t.Helper()
	cmd := m.next(text)
	r, err := m.log.Propose(g.ctx(), cmd)
	if err != nil || r[0].Code != command.OK {
		g.t.Fatalf("propose %q at %s: %v %v", text, m.site, r, err)
	}
	m.settled(cmd)
	return r[0]
}

// count says how often a text was executed.
func count(m *member, text string) (n int) {
	s, _ := m.m.view()
	for _, d := range s.Done {
		if d.Text == text {
			n++
		}
	}
	return n
}

func (g *group) awaitText(m *member, text string) {
	g.t.Helper()
	err := m.m.await(g.ctx(), func(s recordState, _ int) bool {
		return slices.ContainsFunc(s.Done, func(d Done) bool { return d.Text == text })
	})
	if err != nil {
		g.t.Fatalf("%s has not applied %q: %v", m.site, text, err)
	}
}

// awaitSameEntry waits until all members have applied the same entries.
func (g *group) awaitSameEntry(members ...*member) {
	g.t.Helper()
	var most uint64
	for _, m := range members {
		i, err := m.log.Sync(g.ctx())
		if err != nil {
			g.t.Fatalf("sync at %s: %v", m.site, err)
		}
		most = max(most, i)
	}
	ctx := g.ctx()
	for _, m := range members {
		if err := m.m.await(ctx, func(s recordState, _ int) bool { return s.Index >= most }); err != nil {
			g.t.Fatalf("%s stays at entry %d, not %d", m.site, m.m.Index(), most)
		}
		if s, _ := m.m.view(); s.Disorder != "" {
			g.t.Errorf("%s: time or term went back: %s", m.site, s.Disorder)
		}
	}
	for _, m := range members[1:] {
		g.sameEntries(ctx, members[0], m)
	}
}

// sameEntries compares two members at an index that both have just applied;
// idle entries may arrive meanwhile.
func (g *group) sameEntries(ctx context.Context, a, b *member) {
	g.t.Helper()
	for ctx.Err() == nil {
		i, ta := a.m.Entries()
		j, tb := b.m.Entries()
		if i == j && ta == tb {
			return
		}
		if i == j {
			g.t.Fatalf("%s and %s applied different entries up to %d", a.site, b.site, i)
		}
		behind := a
		if j < i {
			behind = b
		}
		_ = behind.m.await(ctx, func(s recordState, _ int) bool { return s.Index >= max(i, j) })
	}
	g.t.Fatalf("%s and %s never stood at one index", a.site, b.site)
}

// status waits for a status that satisfies ok.
func (g *group) status(m *member, what string, ok func(coord.Status) bool) {
	g.t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond) // Changed has one reader only
	defer look.Stop()
	for {
		s := m.log.Status()
		if ok(s) {
			return
		}
		select {
		case <-m.log.Changed():
		case <-look.C:
		case <-deadline.C:
			g.t.Fatalf("%s: no status with %s: %+v", m.site, what, s)
		}
	}
}

// lead waits for a member that leads, by its own word and that of most: what one
// says may be of a former leader, or be a former leader.
func (g *group) lead() *member {
	g.t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		named := map[string]int{}
		for _, m := range g.members {
			named[m.log.Status().Lead]++
		}
		for _, m := range g.members {
			if m.log.Status().IsLead && 2*named[m.site] > len(g.members) {
				return m
			}
		}
		select {
		case <-look.C:
		case <-deadline.C:
			g.t.Fatalf("no member leads: %v name one", named)
		}
	}
}

// follower returns a member that does not lead.
func (g *group) follower() *member {
	g.t.Helper()
	lead := g.lead()
	for _, s := range []string{"c", "b", "a"} {
		if m := g.members[s]; m != nil && m != lead {
			return m
		}
	}
	g.t.Fatal("no follower")
	return nil
}

func unsent(err error) bool {
	return errors.Is(err, coord.ErrNoLead) || errors.Is(err, coord.ErrRefused) || errors.Is(err, coord.ErrClosed)
}

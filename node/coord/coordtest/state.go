package coordtest

import (
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// stateMachine drives the federation's real state.
type stateMachine struct {
	mu sync.Mutex
	s  *fsm.State
}

var _ coord.Machine = (*stateMachine)(nil)

// Apply implements coord.Machine.
func (m *stateMachine) Apply(entry []byte) ([]command.Result, error) {
	b, unread := command.DecodeBatch(entry)
	m.mu.Lock()
	defer m.mu.Unlock()
	b, err := m.s.Ordered(b, unread)
	if err != nil {
		return nil, err
	}
	return m.s.Apply(b)
}

// Snapshot implements coord.Machine.
func (m *stateMachine) Snapshot() (coord.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Snapshot(), nil
}

// Restore implements coord.Machine.
func (m *stateMachine) Restore(r io.Reader) error {
	s, err := fsm.Restore(r)
	if err != nil {
		return fmt.Errorf("restore state: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s = s
	return nil
}

// Result implements coord.Machine.
func (m *stateMachine) Result(id command.ID) (command.Result, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Result(id)
}

// has reports whether the state knows a job. Idle entries are applied meanwhile.
func (m *stateMachine) has(id command.JobID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.s.Job(id)
	return ok
}

// Index implements coord.Machine.
func (m *stateMachine) Index() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Index()
}

// Admit implements coord.Machine.
func (m *stateMachine) Admit(site string, node [16]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Admit(site, node)
}

// Hash returns the state's at its index.
func (m *stateMachine) Hash() (uint64, [32]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Index(), m.s.Hash()
}

// RunState shows that the real state machine stays equal at all members of a
// backend, through changes of leader, a restart and a snapshot.
func RunState(t *testing.T, f Factory) {
	c := f(t)
	g := &group{t: t, c: c, members: map[string]*member{}}
	states := map[string]*stateMachine{}
	propose := func(m *member, cmd command.Command) command.Result {
		t.Helper()
		r, err := m.log.Propose(g.ctx(), cmd)
		if err != nil || r[0].Code != command.OK {
			t.Fatalf("propose %T at %s: %v %v", cmd.Body, m.site, r, err)
		}
		return r[0]
	}
	body := func(m *member, b command.Body) command.Command {
		cmd := m.next("")
		cmd.Ack, cmd.Body = cmd.ID.Seq-1, b
		return cmd
	}
	start := func(m *member) {
		states[m.site] = &stateMachine{s: fsm.New()}
		m.log = c.Open(t, m.site, states[m.site])
	}
	machine := command.Machine{Name: "m", Resources: command.Resources{MilliCPU: 8000}}
	for i, site := range []string{"a", "b", "c"} {
		m := &member{site: site, open: map[uint64]bool{}}
		g.members[site] = m
		start(m)
		if i == 0 {
			propose(m, command.Command{
				ID:   command.ID{Site: site},
				Body: &command.Genesis{Federation: [16]byte{1}, Seed: 7, Params: command.DefaultParams()},
			})
		}
		m.inc = propose(m, registration(site, 1)).Incarnation
		propose(m, body(m, &command.Offer{Version: 1, Machines: []command.Machine{machine}}))
	}
	submit := func(from, to uint64) {
		t.Helper()
		var wg sync.WaitGroup
		for _, m := range g.members {
			wg.Go(func() {
				for n := from; n < to; n++ {
					job := command.JobSpec{Num: n, Count: 3, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000}}
					cmd := body(m, &command.Submit{Jobs: []command.JobSpec{job}})
					if r, err := m.log.Propose(g.ctx(), cmd); err != nil || r[0].Code != command.OK ||
						r[0].Jobs != nil {
						t.Errorf("submit %s.%d: %v %v", m.site, n, r, err)
					}
				}
			})
		}
		wg.Wait()
	}
	submit(1, 10)
	c.MoveLead(t)
	submit(10, 20)
	away := g.follower()
	if err := away.log.Close(); err != nil {
		t.Fatal(err)
	}
	delete(g.members, away.site)
	submit(20, 30)
	c.Compact(t)
	submit(30, 32)
	g.members[away.site] = away
	start(away)
	equalStates(t, g, states)
	if !states["a"].has(command.JobID{Site: g.lead().site, Num: 31}) {
		t.Error("the last job is not in the state")
	}
}

// equalStates compares hashes at one index; idle entries move it meanwhile.
func equalStates(t *testing.T, g *group, states map[string]*stateMachine) {
	t.Helper()
	for ctx := g.ctx(); ctx.Err() == nil; {
		hashes := map[uint64]map[[32]byte]bool{}
		for site, m := range g.members {
			if _, err := m.log.Sync(ctx); err != nil {
				t.Fatalf("sync at %s: %v", site, err)
			}
		}
		for _, s := range states {
			i, h := s.Hash()
			if hashes[i] == nil {
				hashes[i] = map[[32]byte]bool{}
			}
			hashes[i][h] = true
			if len(hashes[i]) > 1 {
				t.Fatalf("different states at entry %d", i)
			}
		}
		if len(hashes) == 1 {
			return
		}
	}
	t.Fatal("the members never stood at one entry")
}

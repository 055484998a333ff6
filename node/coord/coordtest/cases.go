package coordtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

func totalOrder(t *testing.T, g *group) {
	a, b, c := three(g)
	const each, workers = 10, 4
	var wg sync.WaitGroup
	for _, m := range []*member{a, b, c} {
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					text := fmt.Sprintf("%s-%d-%d", m.site, w, i)
					r, err := m.log.Propose(g.ctx(), m.next(text))
					if err != nil || r[0].Code != command.OK {
						t.Errorf("propose %s: %v %v", text, r, err)
						return
					}
					// The result comes after local apply.
					if r[0].Index > m.m.Index() || count(m, text) != 1 {
						t.Errorf("%s answered before it was applied here", text)
					}
				}
			})
		}
	}
	wg.Wait()
	g.awaitSameEntry(a, b, c)
	s, _ := c.m.view()
	if len(s.Done) != 3*each*workers {
		t.Errorf("%d commands executed, not %d", len(s.Done), 3*each*workers)
	}
}

func callsStayTogether(t *testing.T, g *group) {
	a, b, c := three(g)
	var wg sync.WaitGroup
	for _, m := range []*member{a, b, c} {
		wg.Go(func() {
			cmds := []command.Command{m.next("1"), m.next("2"), m.next("3")}
			r, err := m.log.Propose(g.ctx(), cmds...)
			if err != nil || len(r) != 3 {
				t.Errorf("propose three: %v %v", r, err)
			}
		})
	}
	wg.Wait()
	g.awaitSameEntry(a, b, c)
	s, _ := b.m.view()
	for _, site := range []string{"a", "b", "c"} {
		at := slices.IndexFunc(s.Done, func(d Done) bool { return d.ID.Site == site })
		if at < 0 || len(s.Done) < at+3 {
			t.Fatalf("%s's call is not there: %v", site, s.Done)
		}
		for i, d := range s.Done[at : at+3] {
			if d.ID.Site != site || d.Entry != s.Done[at].Entry || d.Text != fmt.Sprint(i+1) {
				t.Errorf("%s's call is torn: %v", site, s.Done)
			}
		}
	}
}

func duplicates(t *testing.T, g *group) {
	a, b, c := three(g)
	for _, m := range []*member{a, b, c} {
		cmd := m.next("once")
		var wg sync.WaitGroup
		results := make([]command.Result, 5)
		for i := range results {
			wg.Go(func() {
				r, err := m.log.Propose(g.ctx(), cmd)
				if err != nil {
					t.Errorf("repeat: %v", err)
					return
				}
				results[i] = r[0]
			})
		}
		wg.Wait()
		for _, r := range results {
			if r.Index != results[0].Index || r.Code != command.OK {
				t.Errorf("repeats at %s gave different results: %v", m.site, results)
			}
		}
	}
	g.awaitSameEntry(a, b, c)
	if n := count(b, "once"); n != 3 {
		t.Errorf("executed %d times, not once a site", n)
	}
}

func registerTwice(t *testing.T, g *group) {
	a, b, c := three(g)
	m := g.follower()
	var wg sync.WaitGroup
	var first, second uint64
	for _, to := range []*uint64{&first, &second} {
		wg.Go(func() {
			r, err := m.log.Propose(g.ctx(), registration(m.site, 2))
			if err != nil {
				t.Errorf("register: %v", err)
				return
			}
			*to = r[0].Incarnation
		})
	}
	wg.Wait()
	if first != m.inc+1 || second != first {
		t.Errorf("one start of a broker got incarnations %d and %d after %d", first, second, m.inc)
	}
	g.awaitSameEntry(a, b, c)
}

func lostAnswer(t *testing.T, g *group) {
	a, b, c := three(g)
	m := g.follower()
	for i := range 3 {
		g.c.LoseAnswer(m.site)
		text := fmt.Sprint("lost-", i)
		g.propose(m, text)
		g.awaitSameEntry(a, b, c)
		if n := count(a, text); n != 1 {
			t.Errorf("executed %d times", n)
		}
	}
}

func leadChange(t *testing.T, g *group) {
	a, b, c := three(g)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	said := map[string]bool{}
	for _, m := range []*member{a, b, c} {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprintf("%s-%d", m.site, i)
				cmd := m.next(text)
				cmd.Ack = m.ack()
				if r, err := m.log.Propose(g.ctx(), cmd); err != nil || r[0].Code != command.OK {
					t.Errorf("propose %s: %v %v", text, r, err)
					return
				}
				m.settled(cmd)
				mu.Lock()
				said[text] = true
				mu.Unlock()
			}
		})
	}
	for range 3 {
		before := g.lead()
		g.propose(before, "before a change")
		term := before.log.Status().Term
		g.c.MoveLead(t)
		for _, m := range []*member{a, b, c} { // it may have come back: then two terms have passed
			g.status(m, "another leader", func(s coord.Status) bool {
				return s.Lead != "" && (s.Lead != before.site || s.Term > term+1)
			})
		}
	}
	close(stop)
	wg.Wait()
	g.awaitSameEntry(a, b, c)
	for text := range said {
		if n := count(a, text); n != 1 {
			t.Errorf("%s executed %d times", text, n)
		}
	}
}

func closeInMidProposal(t *testing.T, g *group) {
	a, b, c := three(g)
	m := g.follower()
	g.c.Lag(m.site)
	cmd := m.next("mid")
	errs := make(chan error, 1)
	go func() {
		_, err := m.log.Propose(g.ctx(), cmd)
		errs <- err
	}()
	others := slices.DeleteFunc([]*member{a, b, c}, func(o *member) bool { return o == m })
	g.awaitText(others[0], "mid")
	if err := m.log.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-errs; !errors.Is(err, coord.ErrUnknown) {
		t.Errorf("a proposal that was sent ended as %v", err)
	}
	g.c.Heal(m.site)
	m.m = NewMachine()
	m.log = g.c.Open(t, m.site, m.m)
	if r, err := m.log.Propose(g.ctx(), cmd); err != nil || r[0].Code != command.OK {
		t.Errorf("the same proposal after a restart: %v %v", r, err)
	}
	g.awaitSameEntry(a, b, c)
	if n := count(a, "mid"); n != 1 {
		t.Errorf("executed %d times", n)
	}
}

func closeIsIdempotent(t *testing.T, g *group) {
	a, _, _ := three(g)
	for _, m := range g.members {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := m.log.Close(); err != nil {
					t.Errorf("close %s: %v", m.site, err)
				}
			})
		}
		wg.Wait()
	}
	if _, err := a.log.Propose(g.ctx(), a.next("late")); !errors.Is(err, coord.ErrClosed) {
		t.Errorf("propose after close: %v", err)
	}
	if _, err := a.log.Sync(g.ctx()); !errors.Is(err, coord.ErrClosed) {
		t.Errorf("sync after close: %v", err)
	}
	if a.log.Err() != nil {
		t.Errorf("a closed log has not failed: %v", a.log.Err())
	}
}

func contexts(t *testing.T, g *group) {
	a, b, c := three(g)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.log.Propose(over, a.next("over")); !unsent(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("a context that had ended: %v", err)
	}
	m := g.follower()
	g.c.Cut(m.site)
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	cmd := m.next("cut off")
	_, err := m.log.Propose(short, cmd)
	if !errors.Is(err, context.DeadlineExceeded) || !unsent(err) && !errors.Is(err, coord.ErrUnknown) {
		t.Errorf("a context that ended: %v", err)
	}
	if _, err := m.log.Sync(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sync where no leader can be reached: %v", err)
	}
	g.c.Heal(m.site)
	if r, err := m.log.Propose(g.ctx(), cmd); err != nil || r[0].Code != command.OK {
		t.Errorf("the same proposal after healing: %v %v", r, err)
	}
	g.awaitSameEntry(a, b, c)
	if count(a, "over") != 0 || count(a, "cut off") != 1 {
		t.Errorf("executed %d and %d times", count(a, "over"), count(a, "cut off"))
	}
}

func stale(t *testing.T, g *group) {
	three(g)
	m := g.follower()
	first := m.next("first")
	second := m.next("second")
	third := m.next("third")
	third.Ack = 2
	for _, cmd := range []command.Command{first, second, third} {
		if _, err := m.log.Propose(g.ctx(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	r, err := m.log.Propose(g.ctx(), first)
	if err != nil || r[0].Code != command.Stale || count(m, "first") != 1 {
		t.Errorf("a command below the floor: %v %v", r, err)
	}
}

func syncIsCurrent(t *testing.T, g *group) {
	a, b, c := three(g)
	for i := range 10 {
		for _, from := range []*member{a, b, c} {
			text := fmt.Sprintf("%s-%d", from.site, i)
			r := g.propose(from, text)
			for _, at := range []*member{a, b, c} {
				index, err := at.log.Sync(g.ctx())
				if err != nil || index < r.Index || count(at, text) != 1 {
					t.Fatalf("sync at %s after %s: entry %d, %v", at.site, text, index, err)
				}
			}
		}
	}
	for _, m := range []*member{a, b, c} {
		g.status(m, "caught up", func(s coord.Status) bool { return s.CaughtUp })
	}
}

func (g *group) filler(m *member, n int) {
	g.t.Helper()
	for i := range n {
		g.propose(m, fmt.Sprint("filler-", i))
	}
}

func snapshotCatchesUp(t *testing.T, g *group) {
	a, b, c := three(g)
	m := g.follower()
	if err := m.log.Close(); err != nil {
		t.Fatal(err)
	}
	delete(g.members, m.site)
	lead := g.lead()
	g.filler(lead, 20)
	g.c.Compact(t)
	g.filler(lead, 3)
	m.m = NewMachine()
	m.log = g.c.Open(t, m.site, m.m)
	g.awaitSameEntry(a, b, c)
	if _, restored := m.m.view(); restored == 0 {
		t.Error("it caught up without a snapshot: the test shows nothing")
	}
}

func snapshotSettlesPending(t *testing.T, g *group) {
	a, b, c := three(g)
	m := g.follower()
	lead := g.lead()
	g.c.Lag(m.site)
	type end struct {
		r   []command.Result
		err error
	}
	ends := make(chan end, 1)
	go func() {
		r, err := m.log.Propose(g.ctx(), m.next("swallowed"))
		ends <- end{r, err}
	}()
	g.awaitText(lead, "swallowed")
	g.filler(lead, 20)
	g.c.Compact(t)
	g.c.Heal(m.site)
	e := <-ends
	if e.err != nil || e.r[0].Code != command.OK {
		t.Errorf("a proposal that a snapshot executed: %v %v", e.r, e.err)
	}
	g.awaitSameEntry(a, b, c)
	if n := count(a, "swallowed"); n != 1 {
		t.Errorf("executed %d times", n)
	}
	if _, restored := m.m.view(); restored == 0 {
		t.Error("it caught up without a snapshot: the test shows nothing")
	}
}

func restartKeepsEverything(t *testing.T, g *group) {
	a, b, c := three(g)
	m := g.follower()
	g.propose(m, "kept")
	if err := m.log.Close(); err != nil {
		t.Fatal(err)
	}
	g.members[m.site].m = NewMachine()
	m.log = g.c.Open(t, m.site, m.m)
	g.register(m, 2)
	if m.inc != 2 {
		t.Errorf("the second start is incarnation %d", m.inc)
	}
	g.propose(m, "after")
	g.awaitSameEntry(a, b, c)
	if count(m, "kept") != 1 {
		t.Error("an executed command is gone after a restart")
	}
}

func tooLarge(t *testing.T, g *group) {
	g.open("a")
	a := g.members["a"]
	job := command.JobSpec{
		Num: 1, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1},
		Payload: make([]byte, command.MaxPayload),
	}
	var cmds []command.Command
	for range 2 * (command.MaxCommand / command.MaxPayload) {
		cmd := a.next("")
		cmd.Body = &command.Submit{Jobs: []command.JobSpec{job}}
		cmds = append(cmds, cmd)
	}
	_, err := a.log.Propose(g.ctx(), cmds...)
	if !errors.Is(err, coord.ErrTooLarge) || !errors.Is(err, coord.ErrRefused) {
		t.Errorf("%d MiB in one call: %v", len(cmds), err)
	}
	if _, err := a.log.Propose(g.ctx()); !errors.Is(err, coord.ErrRefused) {
		t.Errorf("no commands: %v", err)
	}
	bad := a.next("")
	bad.Body = &command.Submit{Jobs: []command.JobSpec{{}}}
	if _, err := a.log.Propose(g.ctx(), bad); !errors.Is(err, coord.ErrRefused) {
		t.Errorf("a command outside its bounds: %v", err)
	}
	if _, err := a.log.Propose(g.ctx(), cmds[0]); err != nil {
		t.Errorf("1 MiB in one call: %v", err)
	}
}

// undecodable: members apply at different moments; once a majority has stopped, the
// others may never hear that the entry is committed.
func undecodable(t *testing.T, g *group) {
	three(g)
	lead := g.lead()
	_, err := lead.log.Propose(g.ctx(), lead.next(Explode))
	if !errors.Is(err, coord.ErrUnknown) && !errors.Is(err, coord.ErrClosed) {
		t.Errorf("an entry that no machine understands: %v", err)
	}
	select {
	case <-lead.log.Failed():
	case <-g.ctx().Done():
		t.Fatal("the member goes on")
	}
	if !errors.Is(lead.log.Err(), errExplode) {
		t.Errorf("it failed of %v", lead.log.Err())
	}
	if _, err := lead.log.Propose(g.ctx(), lead.next("late")); !errors.Is(err, coord.ErrClosed) {
		t.Errorf("propose at a failed log: %v", err)
	}
	for _, m := range g.members {
		if err := m.log.Err(); err != nil && !errors.Is(err, errExplode) {
			t.Errorf("%s failed of %v", m.site, err)
		}
		if count(m, Explode)+count(m, "late") != 0 {
			t.Errorf("%s executed what follows an entry it does not understand", m.site)
		}
	}
}

func siteLost(t *testing.T, g *group) {
	a, b, c := three(g)
	lead := g.lead()
	term := lead.log.Status().Term
	lost := func(m *member, site string, term uint64) error {
		cmd := m.next("")
		cmd.Body = &command.SiteLost{Site: site, Incarnation: 1, Term: term}
		_, err := m.log.Propose(g.ctx(), cmd)
		return err
	}
	if err := lost(g.follower(), "x", term); !unsent(err) {
		t.Errorf("a site loss at a member that does not lead: %v", err)
	}
	if err := lost(lead, "y", term-1); !unsent(err) {
		t.Errorf("a site loss of a former term: %v", err)
	}
	if err := lost(lead, "z", term); err != nil {
		t.Errorf("a site loss of the leader: %v", err)
	}
	g.awaitSameEntry(a, b, c)
	if count(a, "lost x")+count(a, "lost y") != 0 || count(a, "lost z") != 1 {
		t.Errorf("executed %d, %d and %d times", count(a, "lost x"), count(a, "lost y"), count(a, "lost z"))
	}
}

func idleTime(t *testing.T, g *group) {
	a, b, c := three(g)
	s, _ := b.m.view()
	g.c.Idle()
	err := b.m.await(g.ctx(), func(now recordState, _ int) bool {
		return now.Idle > s.Idle && (now.Elapsed > s.Elapsed || now.Term > s.Term)
	})
	if err != nil {
		t.Errorf("log time stands while nothing happens: %v", err)
	}
	g.awaitSameEntry(a, b, c)
}

// workGoesOn: what a machine leaves to the next entries is done at once, not with the
// ticks of an idle log, and when it is done the log is idle again.
func workGoesOn(t *testing.T, g *group) {
	a, b, c := three(g)
	before, _ := a.m.view()
	g.propose(b, Toil)
	err := a.m.await(g.ctx(), func(now recordState, _ int) bool {
		return now.Idle >= before.Idle+toil && now.Work == 0
	})
	after, _ := a.m.view()
	if took := after.Elapsed - before.Elapsed; err != nil || after.Term == before.Term && took > toil/2*1000 {
		t.Errorf("%d entries of work took %d ms of log time: %v", toil, took, err)
	}
	g.propose(c, "and on")
	// Of an idle log one comes now and then, as long as the proposal takes.
	end, _ := a.m.view()
	if end.Term == after.Term && int64(end.Idle-after.Idle) > toil/2+(end.Elapsed-after.Elapsed)/100 {
		t.Errorf("%d empty entries follow when no work is left", end.Idle-after.Idle)
	}
	g.awaitSameEntry(a, b, c)
}

func remove(t *testing.T, g *group) {
	a, _, _ := three(g)
	lead, gone := g.lead(), g.follower()
	if err := gone.log.Remove(g.ctx(), gone.site); err != nil {
		t.Fatal(err)
	}
	g.status(lead, "one member less", func(s coord.Status) bool { return !slices.Contains(s.Members, gone.site) })
	if err := lead.log.Remove(g.ctx(), gone.site); err != nil {
		t.Errorf("removing twice: %v", err)
	}
	g.propose(lead, "goes on")
	_ = a
}

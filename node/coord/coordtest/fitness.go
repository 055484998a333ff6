package coordtest

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// unfitHandsOver: a leader that is not fit hands over, twice in turn, to the one that is fit.
func unfitHandsOver(t *testing.T, g *group) {
	a, b, c := three(g)
	unfit := map[*member]bool{}
	for range 2 {
		old := g.fitLead(unfit)
		old.log.SetUnfit("it is not registered")
		unfit[old] = true
		g.fitLead(unfit)
		g.propose(old, "follows, not fit")
	}
	// Two are not fit: the third leads, and keeps the leadership.
	third := g.fitLead(unfit)
	if now := g.steadyLead(t); now != third {
		t.Errorf("%s leads, and %s is the one that is fit", now.site, third.site)
	}
	for _, m := range g.members {
		m.log.SetUnfit("")
	}
	g.awaitSameEntry(a, b, c)
}

// fitLead waits for a leader that is fit. Where a machine is so busy that heartbeats are
// late, one that is not fit may be elected meanwhile, and hands over again.
func (g *group) fitLead(unfit map[*member]bool) *member {
	g.t.Helper()
	for begin := time.Now(); time.Since(begin) < Patience; {
		now := g.lead()
		if !unfit[now] {
			return now
		}
		g.status(now, "another leader", func(s coord.Status) bool { return s.Lead != "" && s.Lead != now.site })
	}
	g.t.Fatalf("none of those that are fit leads after %s", Patience)
	return nil
}

// steadyLead returns the member that leads for a while in one term. A busy machine costs
// an election now and then, a leadership that goes to and fro each look.
func (g *group) steadyLead(t *testing.T) *member {
	t.Helper()
	const looks = 5
	for range looks {
		before := g.lead()
		term := before.log.Status().Term
		<-time.After(still)
		if s := before.log.Status(); s.IsLead && s.Term == term {
			return before
		}
	}
	t.Fatalf("nobody led for %s in one term, %d times", still, looks)
	return nil
}

// unfitLeadsAlone: where no other voter is fit, the leader leads on, in its term, and orders.
func unfitLeadsAlone(t *testing.T, g *group) {
	a, b, c := three(g)
	leader := g.lead()
	for _, m := range g.members {
		if m != leader {
			m.log.SetUnfit("it is not registered")
		}
	}
	leader.log.SetUnfit("it is not registered")
	leader = g.steadyLead(t)
	g.propose(leader, "goes on")
	g.awaitSameEntry(a, b, c)

	// It dies: one of the others leads, though none is fit.
	if err := leader.log.Close(); err != nil {
		t.Fatal(err)
	}
	rest := a
	if leader == a {
		rest = b
	}
	g.propose(rest, "led by one that is not fit")
}

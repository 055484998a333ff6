package coordtest

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// unfitHandsOver: a leader that is not fit hands over, twice in turn, to the one that is fit.
func unfitHandsOver(t *testing.T, g *group) {
	a, b, c := three(g)
	for range 2 {
		old := g.lead()
		old.log.SetUnfit("it is not registered")
		g.status(old, "another leader", func(s coord.Status) bool { return s.Lead != "" && s.Lead != old.site })
		if now := g.lead(); now == old {
			t.Fatalf("%s still leads", old.site)
		}
		g.propose(old, "follows, not fit")
	}
	// Two are not fit: the third leads, and keeps the leadership.
	third := g.lead()
	term := third.log.Status().Term
	if third.log.Status().Lead != third.site {
		t.Fatalf("%s does not lead", third.site)
	}
	<-time.After(still)
	if now := g.lead(); now != third || now.log.Status().Term != term {
		t.Errorf("%s led in term %d, now %s in term %d", third.site, term, now.site, now.log.Status().Term)
	}
	for _, m := range g.members {
		m.log.SetUnfit("")
	}
	g.awaitSameEntry(a, b, c)
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
	term := leader.log.Status().Term
	leader.log.SetUnfit("it is not registered")
	<-time.After(still)
	if s := leader.log.Status(); !s.IsLead || s.Term != term {
		t.Errorf("%s led in term %d, now %+v", leader.site, term, s)
	}
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

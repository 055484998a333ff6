package transport

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestFarNonVoterIsServedAsVotersAre: a member that does not vote, far from voters that are near each other, has each
// entry half a round trip after its commit, however many are under way. One request at a time took up to one and a half
// more.
func TestFarNonVoterIsServedAsVotersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const farSite = "no-d"
		m := &members{quiet: Quiet{For: 2 * time.Second, Silence: 4 * time.Second}}
		m.apart = func(a, b string) time.Duration {
			if a == farSite || b == farSite {
				return roundTrip / 2
			}
			return time.Millisecond / 2
		}
		r := openRafts(t, m, "a", "b", "cc", farSite)
		site, lead := r.leader()
		for i := range 40 { // it finds out who is far
			if err := lead.Apply([]byte(fmt.Sprint("before ", i)), 0).Error(); err != nil {
				t.Fatal(err)
			}
			<-time.After(roundTrip)
		}
		if site == farSite {
			t.Fatal("who does not vote leads")
		}
		lead.trans.mu.Lock()
		for id, p := range lead.trans.peers {
			if has := p.pipe != nil; has != (id == farSite) {
				t.Errorf("a pipe to %s: %v", id, has)
			}
		}
		lead.trans.mu.Unlock()
		behind := time.Duration(0)
		for i := range 64 {
			if err := lead.Apply([]byte(fmt.Sprint(i)), 0).Error(); err != nil {
				t.Fatal(err)
			}
			committed := time.Now()
			for !slices.Contains(r.node(farSite).state.applied(), fmt.Sprint(i)) {
				<-time.After(time.Millisecond)
			}
			behind = max(behind, time.Since(committed))
		}
		if behind > roundTrip/2+pipePace+noticePace+time.Millisecond {
			t.Errorf("it had an entry %v after the commit", behind)
		}
		r.stopAll()
	})
}

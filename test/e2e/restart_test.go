package e2e

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestKilledBrokerAdoptsItsTasks kills a broker with its tasks at work and
// starts it again: first one that runs for another, then the owner, which also
// leads. Nothing is started twice and nothing is lost.
func TestKilledBrokerAdoptsItsTasks(t *testing.T) {
	t.Parallel()
	// However slowly a busy machine starts a broker, its tasks are not to end by their lease meanwhile.
	fed := start(t, 3, 2, "CLOUDSHARE_LEASE=30s")
	home := fed.Sites[0]
	for _, victim := range []*testbed.Site{fed.Sites[1], home} {
		bag := newGated(t)
		a := submit(t, home, bag.spec(8))
		before := awaitRunning(t, home, a.ID, 6)
		if sitesOf(before)[victim.Name] != 2 {
			t.Fatalf("%s does not run two tasks: %v", victim.Name, sitesOf(before))
		}

		must(t, victim.Kill())
		must(t, fed.Restart(within(t), victim))

		// The same attempts, under the same tokens.
		after := awaitRunning(t, home, a.ID, 6)
		for i, was := range before {
			is := after[i]
			if was.Site == victim.Name && (is.Site != was.Site || is.Attempt != was.Attempt || is.Token != was.Token) {
				t.Errorf("task %d was %+v and is %+v", i, was, is)
			}
		}

		bag.open(t)
		awaitEnd(t, home, a.ID)
		bag.onceEach(t, 8)
		agree(t, fed)
	}
}

// TestAllBrokersDieAtOnce: the power fails at every site, and the tasks'
// supervisors are the only ones left. Everything that was acknowledged is
// there when the brokers are back.
func TestAllBrokersDieAtOnce(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	home := fed.Sites[0]
	bag := newGated(t)
	a := submit(t, home, bag.spec(5))
	keyed, err := home.SubmitKeyed(within(t), "render-1", bag.spec(1))
	must(t, err)
	awaitRunning(t, home, a.ID, 3)

	for _, s := range fed.Sites {
		must(t, s.Kill())
	}
	must(t, fed.Restart(within(t), fed.Sites...))

	again, err := home.SubmitKeyed(within(t), "render-1", bag.spec(1))
	if err != nil || again.ID != keyed.ID || !again.Replayed {
		t.Errorf("key render-1 gave %q and now %+v, %v", keyed.ID, again, err)
	}
	other := bag.spec(2)
	var refused *testbed.HTTPError
	if _, err := home.SubmitKeyed(within(t), "render-1", other); !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("the key with another body: %v, want 422", err)
	}
	bag.open(t)
	awaitEnd(t, home, a.ID)
	awaitEnd(t, home, keyed.ID)
	bag.noOverlap(t)
	agree(t, fed)
}

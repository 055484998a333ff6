package e2e

import (
	"errors"
	"syscall"
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
	historiesAgree(t, fed)
}

// TestRollingRestart: all brokers are told to stop and started again, one after the other, as for an upgrade. Clients
// submit at another one meanwhile. The same attempts go on, and each task starts once.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	all, _ := votersOn(t, 3, append(backend(t), "--lease", "30s")) // see above
	home := all[0]
	bag := newGated(t)
	a := submit(t, home.Site, bag.spec(5))
	before := awaitRunning(t, home.Site, a.ID, 3)
	var meanwhile []*gated
	ends := map[string]*testbed.Site{a.ID: home.Site}
	for i, b := range all {
		next := all[(i+1)%len(all)].Site
		b.End(syscall.SIGTERM)
		other := newGated(t)
		other.open(t)
		ends[submit(t, next, other.spec(1)).ID] = next
		meanwhile = append(meanwhile, other)
		b.Start()
		goOn(t, before, awaitRunning(t, home.Site, a.ID, 3))
	}
	bag.open(t)
	for id, owner := range ends {
		awaitEnd(t, owner, id)
	}
	bag.onceEach(t, 5)
	for _, other := range meanwhile {
		other.onceEach(t, 1)
	}
	must(t, testbed.AwaitEqualState(within(t), all[0].Site, all[1].Site, all[2].Site))
}

// goOn checks that the tasks that ran before are the same attempts now.
func goOn(t *testing.T, before, after []testbed.Task) {
	t.Helper()
	for i, was := range before {
		is := after[i]
		if was.State == "running" && (is.Site != was.Site || is.Attempt != was.Attempt || is.Token != was.Token) {
			t.Errorf("task %d was %+v and is %+v", i, was, is)
		}
	}
}

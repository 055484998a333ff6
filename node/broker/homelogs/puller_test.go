package homelogs

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

// What has ended while the broker was away comes, many in a question; after a restart nothing is asked for again.
func TestWhatHasEndedComesHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{t: t, dir: t.TempDir(), sites: map[string]func(net.Conn){"site-2": honest(give)}}
		f.ran("site-2", 2500)
		f.start()
		pass(time.Minute)
		if got := f.Stats(); f.missingOf("site-2") > 0 || got.Brought != 2500 || got.Questions != 3 || f.parts() > 0 {
			t.Errorf("%+v, %d are missing, %d parts", got, f.missingOf("site-2"), f.parts())
		}
		f.stop()
		f.start()
		pass(time.Minute)
		if got := f.Stats(); got != (Stats{}) || f.missingOf("site-2") > 0 {
			t.Errorf("after a restart: %+v", got)
		}
		f.stop()
	})
}

// Of tasks of which the state does not say where they ran, each site is asked for the newest.
func TestUnrecordedTasksAreAskedForEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{t: t, dir: t.TempDir(), sites: map[string]func(net.Conn){}}
		for n, site := range []string{"site-2", "site-3"} {
			f.sites[site] = honest(func(ctx context.Context, from string, r asklogs.Ref,
			) (asklogs.Output, asklogs.Refusal) {
				if r.Attempt != 0 || int(r.Task%2) != n {
					return asklogs.Output{}, asklogs.NotHere
				}
				r.Attempt = 1
				return give(ctx, from, r)
			})
		}
		f.ran("", 20)
		for i := range f.tasks {
			f.tasks[i].Attempt, f.tasks[i].Token, f.tasks[i].EndedAt = 0, 0, time.Time{}
		}
		f.start()
		pass(time.Minute)
		if got := f.Stats(); f.missingOf("") > 0 || got.Brought != 20 || got.Missing != 0 {
			t.Errorf("%+v, %d are missing", got, f.missingOf(""))
		}
		f.stop()
	})
}

// A site that is away is asked until its outputs would not stay; no other one waits for it.
func TestSiteThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{t: t, dir: t.TempDir(), sites: map[string]func(net.Conn){"site-2": nil, "site-3": honest(give)}}
		f.ran("site-2", 10)
		f.ran("site-3", 10)
		f.start()
		pass(10 * time.Hour)
		if got := f.Stats(); f.missingOf("site-3") > 0 || f.missingOf("site-2") != 10 || got.Waiting != 10 ||
			got.Failed < 500 || got.Failed > 700 {
			t.Errorf("%+v", got)
		}
		f.set("site-2", honest(give))
		pass(2 * mostPause)
		if f.missingOf("site-2") > 0 {
			t.Errorf("it is back: %+v", f.Stats())
		}
		f.set("site-2", nil)
		f.ran("site-2", 1)
		f.worker(t.Context(), "site-2").queue.sweep()
		pass(25 * time.Hour)
		if got := f.Stats(); got.Waiting > 0 {
			t.Errorf("it was away for too long: %+v", got)
		}
		f.stop()
	})
}

// What a site cannot give yet is asked for later; what it has not, never again.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[uint32]int{}
		f := &federation{t: t, dir: t.TempDir()}
		answer := func(ctx context.Context, from string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
			asked[r.Task]++
			switch {
			case r.Task == 0 && asked[0] < 4:
				return asklogs.Output{}, asklogs.Running
			case r.Task == 1:
				return asklogs.Output{}, asklogs.Removed
			case r.Task == 2:
				return asklogs.Output{}, asklogs.Unreadable
			}
			return give(ctx, from, r)
		}
		f.sites = map[string]func(net.Conn){"site-2": honest(answer)}
		f.ran("site-2", 5)
		f.start()
		pass(time.Hour)
		if got := f.Stats(); asked[0] != 4 || asked[1] != 1 || asked[2] != maxTries || f.missingOf("site-2") != 2 ||
			got.Missing != 1 || got.GivenUp != 1 || got.Waiting > 0 {
			t.Errorf("asked %v, %+v", asked, got)
		}
		f.stop()
	})
}

// A cut, and an end of the broker in the middle of an answer, lose nothing that was whole, and leave nothing else.
func TestRestartInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{t: t, dir: t.TempDir()}
		slow := honest(func(ctx context.Context, from string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
			<-time.After(time.Second) // of the bubble
			return give(ctx, from, r)
		})
		f.sites = map[string]func(net.Conn){"site-2": slow}
		f.ran("site-2", 100)
		f.start()
		pass(time.Minute)
		f.stop()
		if err := os.WriteFile(filepath.Join(f.dir, "incoming", "1.part"), []byte("left by kill -9"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.start()
		if f.parts() > 0 {
			t.Error("what a crash has left stays")
		}
		pass(time.Hour)
		if n := f.missingOf("site-2"); n > 0 || f.parts() > 0 {
			t.Errorf("%d are missing, %d parts", n, f.parts())
		}
		f.stop()
	})
}

// A disk that takes nothing delays, and costs no output.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{t: t, dir: t.TempDir(), sites: map[string]func(net.Conn){"site-2": honest(give)}}
		f.ran("site-2", 100)
		f.start()
		f.store.setFail(errors.New("no space left on device"))
		pass(10 * time.Hour)
		if got := f.Stats(); f.missingOf("site-2") != 100 || got.Waiting != 100 || f.parts() > 0 {
			t.Errorf("%+v, %d parts", got, f.parts())
		}
		f.store.setFail(nil)
		pass(2 * mostPause)
		if n := f.missingOf("site-2"); n > 0 {
			t.Errorf("%d are missing", n)
		}
		f.stop()
	})
}

// News count if an attempt of this site's own has run at another one, whether or not its start was told; what has no
// room the sweep finds.
func TestNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{t: t, dir: t.TempDir(), sites: map[string]func(net.Conn){"site-2": honest(give)}}
		f.start()
		pass(time.Minute)
		f.ran("site-2", maxQueue+10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		own := command.JobID{Site: "site-1", Num: 1}
		event := func(job command.JobID, site string, attempt uint32, end fsm.Ending) {
			f.take(ctx, &node.Event{Event: fsm.Event{
				Kind: fsm.EventTaskEnded, Job: job, Site: site, Task: 0, Count: maxQueue + 10, Attempt: attempt,
				Token: 7, End: end, StartedMs: -1,
			}, At: time.Now()})
		}
		event(own, "site-1", 1, fsm.EndSucceeded)
		event(own, "", 0, fsm.EndCancelled)
		event(own, "site-2", 1, fsm.EndDeclined)
		event(command.JobID{Site: "site-3", Num: 1}, "site-2", 1, fsm.EndSucceeded)
		if got := f.Stats(); got.Waiting > 0 {
			t.Errorf("%+v", got)
		}
		event(own, "site-2", 1, fsm.EndSucceeded)
		pass(time.Minute)
		if got := f.Stats(); got.Brought != maxQueue+10 || f.missingOf("site-2") > 0 {
			t.Errorf("%+v", got)
		}
		f.stop()
	})
}

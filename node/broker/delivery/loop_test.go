package delivery

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// bubble plays a test by a clock that goes when nothing else does.
func bubble(t *testing.T, play func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer func() { r.close() }()
		play(t, r)
	})
}

// later lets time pass in a bubble.
func later(d time.Duration) { <-time.After(d) }

// TestOutputsComeHome: of several sites, small ones in their manifests, others beside, large ones in pieces.
func TestOutputsComeHome(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		want := map[command.AttemptRef]map[string]string{}
		for i := range uint32(20) {
			one, other := fmt.Sprint("small ", i), big(fmt.Sprint("of ", i%5)) // some are the same
			d := r.left(fmt.Sprint("site-", i%3), 1, i, one, other)
			want[d.AttemptRef] = map[string]string{"out/000": one, "out/001": other}
		}
		d := r.left("site-1", 2, 0, huge("large"), big("beside"))
		want[d.AttemptRef] = map[string]string{"out/000": huge("large"), "out/001": big("beside")}
		r.start()
		for range len(want) {
			got := r.next()
			if got.Outcome != command.DeliveryOK {
				t.Fatalf("told %+v", got)
			}
			if kept := r.content(got.Job.Num, got.Task); !maps.Equal(kept, want[got.AttemptRef]) {
				t.Errorf("%v: other files than its task left", got.AttemptRef)
			}
			delete(want, got.AttemptRef)
		}
		synctest.Wait()
		if s := r.loop.Stats(); s.Waiting != 0 || s.Full || s.Bytes < 2*files.PieceBytes || len(r.told) > 0 {
			t.Errorf("left to do: %+v", s)
		}
		if n := r.peer("site-2").asked[files.HashOf([]byte(big("of 0")))]; n > 1 {
			t.Errorf("a blob of several tasks was fetched %d times from a site", n)
		}
	})
}

// TestAwaySite: it is waited for as long as is said, then its outputs are lost, those that nobody had time to try, too.
func TestAwaySite(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.peer("back").away, r.peer("gone").away = true, true
		back := r.left("back", 1, 0, big("x"))
		for i := range uint32(3 * Prompt.Batch) {
			r.left("gone", 2, i, "y")
		}
		r.start()
		later(waitFor / 2)
		if why := r.loop.Why(back.AttemptRef); why == "" || len(r.told) > 0 {
			t.Errorf("in between: %d are told; why: %q", len(r.told), why)
		}
		if s := r.loop.Stats(); s.Waiting != 1+3*Prompt.Batch || s.OldestMs < (waitFor/2).Milliseconds() {
			t.Errorf("in between: %+v", s)
		}
		r.peer("back").set(func(p *peer) { p.away = false })
		outcome(t, r.next(), back, command.DeliveryOK, "")
		began := time.Now()
		for range 3 * Prompt.Batch {
			if got := r.next(); got.Outcome != command.DeliveryLost || got.Job.Num != 2 {
				t.Fatalf("told %+v", got)
			}
		}
		if took := time.Since(began); took > waitFor/2+2*longestPause {
			t.Errorf("it took %s to give them up", took)
		}
	})
}

// TestSlowIsNotLost: as long as something comes, a delivery is waited for, however often its site goes.
func TestSlowIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		p := r.peer("slow")
		d := r.left("slow", 1, 0, huge("large"))
		p.breaks = 2 // the manifest and a piece
		r.start()
		for range 2 {
			later(waitFor * 3 / 4)
			p.set(func(p *peer) { p.away, p.breaks = false, 1 })
		}
		outcome(t, r.next(), d, command.DeliveryOK, "")
	})
}

// TestRestartGoesOn: what has come of a large blob is not fetched again by the next life of the broker.
func TestRestartGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		p := r.peer("site-1")
		d := r.left("site-1", 1, 0, huge("large"))
		p.breaks = 2
		r.start()
		synctest.Wait()
		r.close()
		p.set(func(p *peer) { p.away = false })
		r.open()
		r.start()
		outcome(t, r.next(), d, command.DeliveryOK, "")
		if n := p.asked[files.HashOf([]byte(huge("large")))]; n != 3 {
			t.Errorf("%d pieces were asked for, want three of three", n)
		}
	})
}

// TestKeptAndNotSaid: a broker that was killed between both says so without fetching anything.
func TestKeptAndNotSaid(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.left("site-1", 1, 0, big("x"))
		r.deaf = command.NotOwner // the federation never hears it
		r.start()
		r.next()
		r.close()
		asked := r.peer("site-1").asked[d.Output.Manifest]
		r.deaf = command.OK
		r.open()
		r.start()
		outcome(t, r.next(), d, command.DeliveryOK, "")
		if n := r.peer("site-1").asked[d.Output.Manifest]; n != asked {
			t.Errorf("its manifest was asked for %d times, before the restart %d", n, asked)
		}
	})
}

// TestUnheardIsSaidAgain: until the federation has heard it.
func TestUnheardIsSaidAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.left("site-1", 1, 0, "x")
		r.deaf = command.NotOwner
		r.start()
		for range 3 {
			outcome(t, r.next(), d, command.DeliveryOK, "")
		}
		synctest.Wait()
		if r.loop.Why(d.AttemptRef) == "" {
			t.Error("nothing is said of why it is not over")
		}
	})
}

// TestCancelledIsLeft: nothing is said of it, it is fetched no further, and what has come of it may go.
func TestCancelledIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.files.PinsSaid()
		p := r.peer("site-1")
		p.hangs = true
		d := r.left("site-1", 1, 0, big("x"))
		other := r.left("site-2", 1, 1, big("y"))
		r.start()
		outcome(t, r.next(), other, command.DeliveryOK, "")
		r.state.cancel(d.AttemptRef)
		synctest.Wait()
		if s := r.loop.Stats(); s.Waiting != 0 || len(r.told) > 0 {
			t.Errorf("%+v, and %d are told", s, len(r.told))
		}
		p.set(func(p *peer) { p.hangs = false })
		later(48 * time.Hour)
		if _, _, err := r.files.Collect(); err != nil || r.files.Usage(store.Own).Blobs != 2 {
			t.Errorf("%d blobs are left of two, %v", r.files.Usage(store.Own).Blobs, err)
		}
	})
}

// TestCancelledLeavesNoPart: what came in part of outputs that nobody wants any more is gone at once, whether its site
// is waited for or it is on its way; what a broker leaves when it ends stays for the next one.
func TestCancelledLeavesNoPart(t *testing.T) {
	parts := func(r *rig) int {
		found, err := filepath.Glob(filepath.Join(r.dirs[0], "own", "*", "*", "*.part"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for name, play := range map[string]func(*peer){
		"its site is away":   func(p *peer) { p.breaks = 3 },
		"it is on its way":   func(p *peer) { p.stops = 3 },
		"nothing came of it": func(p *peer) { p.stops = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				p := r.peer("site-1")
				play(p)
				d := r.left("site-1", 1, 0, huge("x"))
				r.start()
				synctest.Wait()
				if n := parts(r); n != 1 {
					t.Fatalf("%d parts are there", n)
				}
				r.state.cancel(d.AttemptRef)
				synctest.Wait()
				if n := parts(r); n != 0 || len(r.told) > 0 {
					t.Errorf("%d parts are left, %d are told", n, len(r.told))
				}
				r.peer("site-2").set(func(p *peer) { p.stops = 3 })
				r.left("site-2", 1, 1, huge("y"))
				synctest.Wait()
				r.close()
				if n := parts(r); n != 1 {
					t.Errorf("%d parts are left when the broker has ended", n)
				}
				r.open()
			})
		})
	}
}

// TestNoRoom: outputs are not lost for this site's disk, however long it has no room.
func TestNoRoom(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.close()
		r.quota = 100 << 10
		r.open()
		var list []fsm.Delivery
		for i := range uint32(2) {
			list = append(list, r.left("site-1", uint64(i+1), 0, big(fmt.Sprint("a", i)), big(fmt.Sprint("b", i)),
				big(fmt.Sprint("c", i))))
		}
		r.start()
		first := r.next()
		later(100 * waitFor)
		s := r.loop.Stats()
		left := list[0]
		if first.Job == left.Job {
			left = list[1]
		}
		if why := r.loop.Why(left.AttemptRef); !s.Full || s.Waiting != 1 || why == "" || len(r.told) > 0 {
			t.Fatalf("without room: %+v; why: %q", s, why)
		}
		if err := r.book.Drop(first.Job.Num); err != nil {
			t.Fatal(err)
		}
		r.files.PinsSaid()
		if _, _, err := r.files.Collect(); err != nil {
			t.Fatal(err)
		}
		outcome(t, r.next(), left, command.DeliveryOK, "")
		if r.loop.Stats().Full {
			t.Error("it is still said to be full")
		}
	})
}

// TestFullDisk: nothing is asked for while the broker keeps the rest of its disk for its journal.
func TestFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.full.set(errors.New("less than min_free"))
		d := r.left("site-1", 1, 0, "x")
		r.start()
		later(10 * waitFor)
		if s := r.loop.Stats(); !s.Full || len(r.peer("site-1").asked) > 0 || len(r.told) > 0 {
			t.Errorf("%+v; asked %v", s, r.peer("site-1").asked)
		}
		r.full.set(nil)
		outcome(t, r.next(), d, command.DeliveryOK, "")
	})
}

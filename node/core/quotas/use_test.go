package quotas

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

// after is unix time in milliseconds, so long after some moment.
func after(d time.Duration) int64 { return 1_800_000_000_000 + d.Milliseconds() }

// left returns the core seconds that are left of alice's use.
func left(b *Book, at time.Duration) uint64 { return b.List(after(at))[1].CoreSeconds }

func wantAbout(t *testing.T, what string, got, want uint64) {
	t.Helper()
	if got < want-want/100 || got > want+want/100 {
		t.Errorf("%s: %d core seconds are left, want about %d", what, got, want)
	}
}

// TestHalfLives: each half-life forgets half, however often it is looked at, the least and the greatest as well.
func TestHalfLives(t *testing.T) {
	const day = 24 * time.Hour
	for _, life := range []time.Duration{node.MinUserHalfLife, day, node.UserHalfLife, node.MaxUserHalfLife} {
		often, once := NewBook(), NewBook()
		for _, b := range []*Book{&often, &once} {
			b.SetHalfLife(life)
			b.user("alice").use = use{1_000_000_000, after(0)}
		}
		for i := range 1000 {
			often.Decay(after(2 * life * time.Duration(i) / 1000))
		}
		wantAbout(t, life.String()+", looked at often", left(&often, 2*life), 250_000)
		wantAbout(t, life.String()+", looked at once", left(&once, 2*life), 250_000)
	}
}

// TestIdleUsersUseIsForgotten: who comes back after weeks in which others went on is before them, and after months is
// not known any more.
func TestIdleUsersUseIsForgotten(t *testing.T) {
	b := NewBook()
	b.SetWindow(1000)
	b.user("alice").use = use{1_000_000_000, after(0)}
	b.user("bob").use = use{500_000_000, after(4 * node.UserHalfLife)}
	b.Hold("alice", oneCore)
	b.Hold("bob", oneCore)
	b.Decay(after(4 * node.UserHalfLife))
	if got := b.Next(); got != "alice" {
		t.Errorf("next is %q", got)
	}
	b.user("carol").use = use{1_000_000_000, after(0)}
	b.Decay(after(100 * node.UserHalfLife))
	var writes []record.Write
	b.Write(&writes)
	if b.users["carol"] != nil {
		t.Error("one of whom there is nothing to know is kept")
	}
}

// TestAnotherHalfLifeCountsFromTheStart: what was forgotten by the one before stays forgotten, no more and no less,
// also of a user of whom nothing has run since.
func TestAnotherHalfLifeCountsFromTheStart(t *testing.T) {
	j, err := record.OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	b := NewBook()
	b.Accept(1, "alice", oneCore, 0, 0)
	b.Look(1, Moment{1000, after(0)}, func(uint64) (fsm.Counts, bool) { return fsm.Counts{fsm.Running: 1}, true })
	b.user("alice").use.milliSeconds = 1_000_000_000
	write := func() {
		var writes []record.Write
		b.Write(&writes)
		if err := j.Commit(writes); err != nil {
			t.Fatal(err)
		}
	}
	write()
	b.Decay(after(7 * 24 * time.Hour))
	write()
	b = NewBook()
	b.SetHalfLife(24 * time.Hour)
	if err := b.Recover(j); err != nil {
		t.Fatal(err)
	}
	wantAbout(t, "at the start", left(&b, 7*24*time.Hour), 500_000)
	wantAbout(t, "a day later", left(&b, 8*24*time.Hour), 250_000)
}

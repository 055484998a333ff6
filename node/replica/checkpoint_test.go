package replica

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

func TestCheckpointLevels(t *testing.T) {
	for _, c := range []struct {
		before, after int64
		level         int
	}{
		{0, 0, -1},
		{0, 4999, -1},
		{4999, 5000, 0},
		{5000, 9999, -1},
		{9999, 10000, 1},
		{0, 60000, 3},
		{39999, 40001, 3},
		{639_999, 640_000, 7},
		{1, 1 << 40, 7},
	} {
		if got := crossedLevel(c.before, c.after); got != c.level {
			t.Errorf("from %d to %d ms: level %d, want %d", c.before, c.after, got, c.level)
		}
	}
	for took, level := range map[time.Duration]int{
		0: 0, 25 * time.Millisecond: 0, 26 * time.Millisecond: 1, 640 * time.Millisecond: 5,
		time.Minute: maxCheckpointLevel,
	} {
		if got := affordableLevel(took); got != level {
			t.Errorf("a hash that takes %v: level %d, want %d", took, got, level)
		}
	}
}

// Two replicas that can afford different levels choose entries in common, however
// the log's entries lie, and remember the newest of them.
func TestCheckpointsInCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := []int{rapid.IntRange(0, 7).Draw(t, "one"), rapid.IntRange(0, 7).Draw(t, "other")}
		rings := make([]checkpointRing, 2)
		now, newest := int64(0), uint64(0)
		for entry := uint64(1); entry <= 400; entry++ {
			before := now
			now += rapid.Int64Range(0, 8000).Draw(t, "step")
			level := crossedLevel(before, now)
			for i := range rings {
				if level >= levels[i] {
					rings[i].add(checkpointMark{coord.Checkpoint{Entry: entry}, level})
				}
			}
			if level >= max(levels[0], levels[1]) {
				newest = entry
			}
			a, b := byEntry(&rings[0]), byEntry(&rings[1])
			if len(a) > coord.MaxCheckpoints || len(b) > coord.MaxCheckpoints {
				t.Fatalf("%d and %d are remembered", len(a), len(b))
			}
			if newest > 0 && !(slices.ContainsFunc(a, func(c coord.Checkpoint) bool { return c.Entry == newest }) &&
				slices.ContainsFunc(b, func(c coord.Checkpoint) bool { return c.Entry == newest })) {
				t.Fatalf("entry %d is not in both %v and %v", newest, a, b)
			}
		}
	})
}

// TestCountedCheckpointsInCommon: two replicas of which one is up to 10,000 entries behind have a counted checkpoint in
// common, and never more of them than are told.
func TestCountedCheckpointsInCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ahead := rapid.Uint64Range(15_000, 200_000).Draw(t, "entries")
		behind := ahead - rapid.Uint64Range(0, 10_000).Draw(t, "behind")
		lists := map[uint64][]coord.Checkpoint{}
		var ring checkpointRing
		for entry := uint64(countedEvery); entry <= ahead; entry += countedEvery {
			if behind < entry && lists[behind] == nil {
				lists[behind] = byEntry(&ring)
			}
			ring.add(checkpointMark{coord.Checkpoint{Entry: entry}, countedLevel(entry)})
		}
		lists[ahead] = byEntry(&ring)
		if lists[behind] == nil { // no such entry lies between them
			lists[behind] = lists[ahead]
		}
		if n := len(lists[ahead]); n > coord.MaxCheckpoints-keptAtLevel*(maxCheckpointLevel+1) {
			t.Fatalf("%d are remembered", n)
		}
		known := func(c coord.Checkpoint) bool { return slices.Contains(lists[behind], c) }
		if !slices.ContainsFunc(lists[ahead], known) {
			t.Fatalf("nothing in common of %v and %v", lists[ahead], lists[behind])
		}
	})
}

// TestHeldLogTimeEndsNoCheckpoints: a leader that holds log time, or moves it by too little, has histories compared all
// the same. Found by a leader in test/attacks that had let time run fast before: it stood, and what the leader told a
// follower was not found.
func TestHeldLogTimeEndsNoCheckpoints(t *testing.T) {
	r := checkpointed(t)
	for range 3 * countedEvery {
		if _, err := r.Apply(idle(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	var entries []uint64
	for _, c := range awaitCheckpoints(t, r) {
		entries = append(entries, c.Entry)
	}
	if !slices.Equal(entries, []uint64{countedEvery, 2 * countedEvery, 3 * countedEvery}) {
		t.Errorf("checkpoints at %v", entries)
	}
}

// idle is an entry that moves log time only.
func idle(term uint64, elapsed time.Duration) []byte {
	return (&command.Batch{Term: term, Elapsed: elapsed.Milliseconds()}).Append(nil)
}

// checkpointed is a founded replica that keeps checkpoints.
func checkpointed(t *testing.T) *Replica {
	t.Helper()
	r := NewReplica()
	r.KeepCheckpoints()
	params := command.DefaultParams()
	_, err := r.Apply((&command.Batch{Term: 1, Commands: []command.Command{
		{ID: command.ID{Site: "site-1"}, Body: &command.Genesis{Federation: [16]byte{1}, Seed: 1, Params: params}},
	}}).Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// awaitCheckpoints waits until the hash under way is there, and returns them all.
func awaitCheckpoints(t *testing.T, r *Replica) []coord.Checkpoint {
	t.Helper()
	for {
		r.mu.Lock()
		busy := r.points.hashing
		r.points.rest = time.Time{} // tests move log time faster than the clock
		r.mu.Unlock()
		if !busy {
			return r.Checkpoints()
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the hash does not come")
		}
	}
}

// An idle federation has checkpoints, too; each is the hash of the state right
// after its entry, the same at a replica that was restored from a snapshot.
func TestCheckpointsOfAnIdleFederation(t *testing.T) {
	a, b := checkpointed(t), NewReplica()
	b.KeepCheckpoints()
	want := map[uint64][32]byte{}
	for s := 1; s <= 60; s++ {
		for _, r := range []*Replica{a, b} {
			if r == b && s < 20 {
				continue
			}
			if _, err := r.Apply(idle(1, time.Duration(s)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		index, hash := a.Hash()
		want[index] = hash
		awaitCheckpoints(t, a)
		awaitCheckpoints(t, b)
		if s == 19 {
			var snapshot bytes.Buffer
			_, held := a.Held()
			if err := held.Write(&snapshot); err != nil {
				t.Fatal(err)
			}
			if err := b.Restore(&snapshot); err != nil {
				t.Fatal(err)
			}
			for b.Index() < a.Index() { // what came behind the checkpoint that was held
				if _, err := b.Apply(idle(1, time.Duration(b.Index())*time.Second)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	got := a.Checkpoints()
	if len(got) < keptAtLevel {
		t.Fatalf("checkpoints %v", got)
	}
	for _, c := range got {
		if want[c.Entry] != c.Hash {
			t.Errorf("entry %d has hash %x, the checkpoint %x", c.Entry, want[c.Entry], c.Hash)
		}
	}
	theirs := b.Checkpoints()
	if n := len(theirs); n == 0 || theirs[n-1] != got[len(got)-1] {
		t.Errorf("restored: %v, else %v", theirs, got)
	}
	if entry, s := a.Held(); entry != got[len(got)-1].Entry || s.(heldState).Hash() != got[len(got)-1].Hash {
		t.Errorf("held is entry %d, the newest checkpoint %d", entry, got[len(got)-1].Entry)
	}
}

// What was hashed of a state that was replaced meanwhile is forgotten.
func TestCheckpointsOfAReplacedState(t *testing.T) {
	r := checkpointed(t)
	if _, err := r.Apply(idle(1, 6*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := awaitCheckpoints(t, r); len(got) != 1 {
		t.Fatalf("checkpoints %v", got)
	}
	var snapshot bytes.Buffer
	_, held := r.Held()
	if err := held.Write(&snapshot); err != nil {
		t.Fatal(err)
	}
	old := r.freeze()
	if err := r.Restore(&snapshot); err != nil {
		t.Fatal(err)
	}
	r.points.hashed(old, [32]byte{}, time.Millisecond, 0)
	if got := r.Checkpoints(); len(got) > 0 {
		t.Errorf("of the state before: %v", got)
	}
	if entry, _ := r.Held(); entry != r.Index() {
		t.Errorf("held is entry %d, now it is %d", entry, r.Index())
	}
}

//go:build zookeeper

package zk

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// small has snapshots often, so that a short test sees many.
func small() *timing {
	t := quick()
	t.snapshotEntries, t.trail, t.maxEntries = 64, 16, 256
	return t
}

// nodes counts the znodes of the tree.
func (c *cluster) nodes(t *testing.T, l *Log) (total, entries int) {
	t.Helper()
	for _, path := range []string{
		tree.LogPath, tree.PartsPath, tree.SnapshotsPath, tree.MembersPath, tree.VotersPath,
		tree.PresentPath,
	} {
		n, err := l.c.children(patience(t), path)
		if err != nil {
			t.Fatal(err)
		}
		total += 1 + len(n.children)
		if path == tree.LogPath {
			entries = len(n.children)
		}
	}
	return total, entries
}

// TestTreeIsBounded: the tree stays small whatever the load.
func TestTreeIsBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time = small()
	all := c.open(t, "a", "b")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	most := 0
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, entries := c.nodes(t, all[1].l)
			most = max(most, entries)
		}
	})
	var talkers sync.WaitGroup
	for range 8 {
		talkers.Go(func() {
			for range 100 {
				if _, err := all[0].l.Propose(patience(t), registration("a", 1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	talkers.Wait()
	for range 400 {
		if err := all[0].say(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	same(t, all)
	if uint64(most) > c.time.maxEntries+2 {
		t.Errorf("%d entries in the tree, the bound is %d", most, c.time.maxEntries)
	}
	if p, _, err := all[0].l.c.pointer(patience(t)); err != nil || p.Entry == 0 {
		t.Errorf("no snapshot was written: %+v, %v", p, err)
	}
}

// TestLongEntries: few and long entries are bounded by their bytes, and do not
// stand in each other's way.
func TestLongEntries(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.snapshotBytes, c.time.maxBytes = 256<<10, 1<<20
	all := c.open(t, "a", "b")
	job := command.JobSpec{
		Num: 1, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1},
		Payload: make([]byte, 64<<10),
	}
	for i := range uint64(40) {
		cmd := command.Command{
			ID: command.ID{Site: "a", Incarnation: all[0].inc, Seq: i + 1}, Ack: i,
			Body: &command.Submit{Jobs: []command.JobSpec{job}},
		}
		if r, err := all[0].l.Propose(patience(t), cmd); err != nil || r[0].Code != command.OK {
			t.Fatalf("entry %d: %v, %v", i, r, err)
		}
		all[0].said++
	}
	same(t, all)
	kept := int64(0)
	n, err := all[0].l.c.children(patience(t), tree.LogPath)
	for _, name := range n.children {
		var z node
		if z, err = all[0].l.c.get(patience(t), tree.LogPath+"/"+name); err == nil {
			kept += int64(len(z.data))
		}
	}
	if err != nil || kept > c.time.maxBytes+256<<10 {
		t.Errorf("%d bytes of entries are kept, %v", kept, err)
	}
}

// TestLeadOfMuch: who has applied more than the log may hold takes the leadership all
// the same.
func TestLeadOfMuch(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.snapshotBytes, c.time.maxBytes = 64<<10, 128<<10
	all := c.open(t, "a", "b")
	for i := range uint64(10) {
		job := command.JobSpec{
			Num: i + 1, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1},
			Payload: make([]byte, 32<<10),
		}
		cmd := command.Command{
			ID: command.ID{Site: "a", Incarnation: all[0].inc, Seq: i + 1}, Ack: i,
			Body: &command.Submit{Jobs: []command.JobSpec{job}},
		}
		if _, err := all[0].l.Propose(patience(t), cmd); err != nil {
			t.Fatal(err)
		}
		all[0].said++
	}
	same(t, all)
	c.MoveLead(t)
	talk(t, all, func() {})
}

// TestTrimmingGoesOn: a leader that was cut off between the pointer and trimming
// leaves a log that is trimmed although no newer snapshot can be written.
func TestTrimmingGoesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour
	all := c.open(t, "a")
	l := all[0].l
	for range 10 {
		if err := all[0].say(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	r := l.leaderTerm.Load()
	if err := l.compact(r, 1<<40); err != nil { // all entries stay
		t.Fatal(err)
	}
	if _, n := c.nodes(t, l); n < 10 {
		t.Fatalf("%d entries: the test shows nothing", n)
	}
	if err := l.compact(r, 0); err != nil {
		t.Fatal(err)
	}
	if _, n := c.nodes(t, l); n != 1 {
		t.Errorf("%d entries are left", n)
	}
}

func registration(site string, n byte) command.Command {
	return command.Command{
		ID:   command.ID{Site: site},
		Body: &command.Register{Node: coordtest.Node(site), Boot: [16]byte{n}, HTTP: "h:1", Peer: "p:1", MaxVersion: 1},
	}
}

// TestSlowReader: a member that hears nothing while the log is trimmed goes on
// from a snapshot, over and over.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time = small()
	all := c.open(t, "a", "b", "cc")
	lead := c.leader(t)
	var slow, fast *speaker
	for _, s := range all {
		if s.l == lead {
			fast = s
		} else {
			slow = s
		}
	}
	for range 3 {
		c.Lag(slow.site)
		for range 200 {
			if err := fast.say(patience(t)); err != nil {
				t.Fatal(err)
			}
		}
		c.Heal(slow.site)
		same(t, all)
	}
	if slow.m.Restored() == 0 {
		t.Error("it never needed a snapshot: the test shows nothing")
	}
}

// lateEntries is more than the tree holds.
var lateEntries = flag.Uint64("late-entries", 20_000, "entries before TestLateJoiner's member joins")

// TestLateJoiner: a new member, and one that was away, after many entries.
func TestLateJoiner(t *testing.T) {
	c := newCluster(t)
	c.time.Slots, c.time.Gather = 32, 1 // many entries, as fast as they go
	all := c.open(t, "a", "b")
	away := all[1]
	if err := away.l.Close(); err != nil {
		t.Fatal(err)
	}
	if *lateEntries <= c.time.maxEntries {
		t.Fatalf("the tree holds %d entries: the test shows nothing", c.time.maxEntries)
	}
	began := time.Now()
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	for range 32 {
		wg.Go(func() {
			for all[0].m.Index() < *lateEntries {
				if _, err := all[0].l.Propose(ctx, registration("a", 1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d entries in %v", all[0].m.Index(), time.Since(began).Round(time.Millisecond))
	total, kept := c.nodes(t, all[0].l)
	t.Logf("%d znodes, %d of them entries", total, kept)
	if uint64(kept) > c.time.maxEntries {
		t.Errorf("%d entries in the tree, the bound is %d", kept, c.time.maxEntries)
	}
	began = time.Now()
	late := c.open(t, "cc")[0]
	t.Logf("the new member is current after %v", time.Since(began).Round(time.Millisecond))
	away.m = coordtest.NewMachine()
	away.l = c.Open(t, "b", away.m).(*Log)
	same(t, []*speaker{all[0], late, away})
	if late.m.Restored() == 0 || away.m.Restored() == 0 {
		t.Error("they came without a snapshot: the test shows nothing")
	}
}

// TestInterruptedSnapshot: chunks and parts that a leader left behind go.
func TestInterruptedSnapshot(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	l := c.leader(t)
	for i, path := range []string{
		tree.SnapshotsPath + "/" + tree.Number(3) + ".1.0", tree.SnapshotsPath + "/" + tree.Number(9) + ".7.0", tree.PartPath(1<<40, 0),
	} {
		if _, err := l.c.write(patience(t), l.c.create(path, fmt.Append(nil, i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	c.MoveLead(t)
	c.Compact(t)
	now := c.leader(t)
	p, _, err := now.c.pointer(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	n, err := now.c.children(patience(t), tree.SnapshotsPath)
	if err != nil || len(n.children) != len(p.Sums) {
		t.Errorf("chunks %v beside %d of the snapshot, %v", n.children, len(p.Sums), err)
	}
	if n, err = now.c.children(patience(t), tree.PartsPath); err != nil || len(n.children) != 0 {
		t.Errorf("parts %v, %v", n.children, err)
	}
	talk(t, all, func() {})
}

// TestPartsTrimmedUnderReader: an entry whose parts are gone already, because it is
// in the snapshot, is no damage.
func TestPartsTrimmedUnderReader(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour
	all := c.open(t, "a")
	jobs := longJobs(16, 1)
	cmd := command.Command{ID: command.ID{Site: "a", Incarnation: all[0].inc, Seq: 1}, Body: &command.Submit{Jobs: jobs}}
	if _, err := all[0].l.Propose(patience(t), cmd); err != nil {
		t.Fatal(err)
	}
	all[0].said++
	l := all[0].l
	r := l.leaderTerm.Load()
	if err := l.compact(r, 1<<40); err != nil { // the pointer, and nothing trimmed
		t.Fatal(err)
	}
	gone := 0
	if err := r.sweep(tree.PartsPath, func(string) bool { gone++; return true }); err != nil || gone == 0 {
		t.Fatalf("%d parts, %v: the test shows nothing", gone, err)
	}
	late := c.open(t, "b")[0]
	same(t, []*speaker{all[0], late})
	if late.m.Restored() == 0 {
		t.Error("it read the entry all the same")
	}
}

// longJobs returns n jobs, the first of that number, that take an entry in parts: no payload is like the one before,
// since equal ones stand in an entry once.
func longJobs(n int, first uint64) []command.JobSpec {
	jobs := make([]command.JobSpec, n)
	for i := range jobs {
		jobs[i] = command.JobSpec{
			Num: first + uint64(i), Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1},
			Payload: bytes.Repeat([]byte{byte(i)}, 64<<10),
		}
	}
	return jobs
}

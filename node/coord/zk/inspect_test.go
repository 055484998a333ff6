//go:build zookeeper

package zk

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// TestInspect: a sound tree has no faults, and each damage is named by its path.
func TestInspect(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	talk(t, all, func() {})
	c.Compact(t)
	talk(t, all, func() {})
	r, err := Inspect(patience(t), c.place, 3, testLogger())
	if err != nil || len(r.Faults) > 0 {
		t.Fatalf("a sound tree: %v, %v", r, err)
	}
	lead := c.leader(t)
	if r.Lead.Site != lead.cfg.Site || !r.Lead.Held || r.Snapshot.Entry == 0 || r.Snapshot.Chunks == 0 ||
		len(r.Entries) != 3 {
		t.Errorf("%+v", r)
	}
	for _, m := range r.Members {
		if !m.Voter || !m.Connected {
			t.Errorf("%+v", m)
		}
	}
	p, _, err := lead.c.pointer(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range c.logs {
		_ = l.Close() // the damage is for Inspect alone
	}
	conn, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	overwrite(t, conn, p.Chunk(0), []byte("x"))
	last := r.Log.Last
	overwrite(t, conn, tree.EntryPath(last), []byte("x"))
	if _, err := conn.write(t.Context(), conn.remove(tree.EntryPath(last-1))); err != nil {
		t.Fatal(err)
	}
	if r, err = Inspect(patience(t), c.place, 3, testLogger()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.Chunk(0), tree.EntryPath(last), tree.EntryPath(last - 1)} {
		if !slices.ContainsFunc(r.Faults, func(f string) bool { return strings.Contains(f, c.place.Chroot+path) }) {
			t.Errorf("%s is not among %q", path, r.Faults)
		}
	}
	if r.Lead.Held {
		t.Error("a closed leader's session lives")
	}
}

// TestInspectWhileTrimmed: a tree that is trimmed while it is looked at has no faults,
// one whose log was cut off in front has.
func TestInspectWhileTrimmed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time = small()
	c.time.snapshotEntries, c.time.trail = 3, 0
	all := c.open(t, "a", "b")
	looks := 0
	stop, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for ; ; looks++ {
			select {
			case <-stop:
				return
			default:
			}
			if r, err := Inspect(patience(t), c.place, maxShown, testLogger()); err != nil || len(r.Faults) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
		}
	}()
	end := sync.OnceFunc(func() { close(stop); <-looked })
	defer end()
	for i := range uint64(16) { // more would take the servers' heap
		jobs := longJobs(10, 10*i+1) // an entry in parts
		cmd := command.Command{
			ID: command.ID{Site: "a", Incarnation: all[0].inc, Seq: i + 1}, Ack: i,
			Body: &command.Submit{Jobs: jobs},
		}
		if _, err := all[0].l.Propose(patience(t), cmd); err != nil {
			t.Fatal(err)
		}
	}
	end()
	if looks < 3 {
		t.Errorf("%d looks show nothing", looks)
	}
	for _, s := range all {
		_ = s.l.Close()
	}
	conn, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	r, err := Inspect(patience(t), c.place, 0, testLogger())
	if err != nil || r.Log.First > r.Snapshot.Entry {
		t.Fatalf("%+v, %v", r, err)
	}
	for n := r.Log.First; n <= r.Snapshot.Entry+1; n++ {
		if _, err := conn.write(patience(t), conn.remove(tree.EntryPath(n))); err != nil &&
			!errors.Is(err, zk.ErrNoNode) {
			t.Fatal(err)
		}
	}
	r, err = Inspect(patience(t), c.place, 0, testLogger())
	want := c.place.Chroot + tree.LogPath // its first entry, or all
	if err != nil || !slices.ContainsFunc(r.Faults, func(f string) bool { return strings.Contains(f, want) }) {
		t.Errorf("%s is not among %q, %v", want, r.Faults, err)
	}
}

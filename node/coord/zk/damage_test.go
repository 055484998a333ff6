//go:build zookeeper

package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// refused wants Open to fail with an error that names what is wrong, and the tree
// to be as it was.
func (c *cluster) refused(t *testing.T, cfg Config, want error, words ...string) {
	t.Helper()
	before := dump(t, cfg.Place)
	cfg.timing = quick()
	cfg.timing.open = 3 * time.Second
	l, err := Open(patience(t), cfg)
	if err == nil {
		_ = l.Close()
		t.Errorf("opened, not %v", want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\ndoes not say %q", err, w)
		}
	}
	if !errors.Is(err, want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, not %v", err, want)
	}
	if after := dump(t, cfg.Place); after != before {
		t.Errorf("the tree was changed:\n%s\n%s", before, after)
	}
}

// dump is everything below the root that does not move by itself.
func dump(t *testing.T, p Place) string {
	t.Helper()
	conn, _, err := zk.Connect(strings.Split(servers.Addrs(), ","), 2*time.Second, zk.WithLogInfo(false),
		zk.WithLogger(zkLogger{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.AddAuth("digest", []byte(p.User+":"+p.Password)); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var walk func(path string)
	walk = func(path string) {
		data, stat, err := conn.Get(path)
		if err != nil {
			fmt.Fprintln(&b, path, err)
			return
		}
		if stat.EphemeralOwner == 0 {
			fmt.Fprintln(&b, path, stat.Version, len(data))
		}
		names, _, _ := conn.Children(path)
		for _, n := range names {
			walk(strings.TrimSuffix(path, "/") + "/" + n)
		}
	}
	root := p.Chroot
	if root == "" {
		root = "/"
	}
	walk(root)
	return b.String()
}

func TestNoEnsemble(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	cfg := c.config("a", coordtest.NewMachine())
	cfg.Servers, cfg.dial = []string{"127.0.0.1:1"}, nil
	cfg.timing = quick()
	cfg.timing.open = 2 * time.Second
	_, err := Open(patience(t), cfg)
	wants(t, err, ErrUnreachable)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v does not say which", err)
	}
}

func TestWrongPlaces(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour // nothing moves by itself
	c.open(t, "a")
	joining := func(site string) Config { return c.config(site, coordtest.NewMachine()) }

	cfg := joining("b")
	cfg.Chroot += "-wrong"
	c.refused(t, cfg, ErrNoTree, cfg.Chroot, "--bootstrap")

	cfg = joining("b")
	cfg.Join, cfg.Bootstrap, cfg.Federation = false, true, [16]byte{2}
	c.refused(t, cfg, tree.ErrTree, c.place.Chroot+"/federation")

	cfg = joining("b")
	cfg.Federation = [16]byte{2}
	c.refused(t, cfg, coord.ErrForeign, c.place.Chroot)

	cfg = joining("b")
	cfg.Password = "wrong"
	c.refused(t, cfg, ErrDenied, c.place.Chroot+"/federation")

	// A name that is another node's.
	cfg = joining("x")
	cfg.Site, cfg.Node = "a", [16]byte{9}
	c.refused(t, cfg, coord.ErrJoinRefused)

	// Data of another federation.
	other := newCluster(t)
	other.fed = [16]byte{2}
	l := other.open(t, "q")[0].l
	cfg = other.config("q", coordtest.NewMachine())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Place = c.place
	c.refused(t, cfg, ErrIdentity, c.place.Chroot+"/federation")

	// A tree that a newer version wrote. Who is in it would stop.
	if err := c.leader(t).Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	for text, want := range map[string]error{`{"version":99}`: tree.ErrVersion, `{"version":1}`: tree.ErrVersion, `hello`: tree.ErrTree} {
		n, err := conn.get(patience(t), tree.FederationPath)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.write(patience(t), conn.set(tree.FederationPath, []byte(text), -1)); err != nil {
			t.Fatal(err)
		}
		c.refused(t, joining("b"), want, c.place.Chroot+"/federation")
		if _, err := conn.write(patience(t), conn.set(tree.FederationPath, n.data, -1)); err != nil {
			t.Fatal(err)
		}
	}

	// An ACL that lets anybody write.
	if _, err := conn.zk.SetACL(c.place.Chroot+tree.LogPath, zk.WorldACL(zk.PermAll), -1); err != nil {
		t.Fatal(err)
	}
	c.refused(t, joining("b"), ErrDenied, c.place.Chroot+tree.LogPath, "anybody")
}

// TestAnotherTree: a member that comes back to a chroot that holds another
// federation by now stops, and leaves it alone.
func TestAnotherTree(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour
	s := c.open(t, "a")[0]
	c.Cut("a")
	other, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	wipe(t, other, c.place.Chroot)
	err = Found(patience(t), c.place, Seed{
		Federation: [16]byte{2}, Lineage: [16]byte{3}, Entry: s.m.Index() + 1, State: strings.NewReader("another state"),
	}, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	before := dump(t, c.place)
	c.Heal("a")
	fails(t, s.l, ErrIdentity, c.place.Chroot+"/federation", "another tree")
	if after := dump(t, c.place); after != before {
		t.Errorf("the tree was\n%s\nand is\n%s", before, after)
	}
}

// wipe deletes a znode and all below it.
func wipe(t *testing.T, c *client, path string) {
	t.Helper()
	below := strings.TrimPrefix(path, c.root)
	n, err := c.children(patience(t), below)
	for _, name := range n.children {
		wipe(t, c, path+"/"+name)
	}
	if err == nil {
		_, err = c.retryRead(patience(t), "delete", below, func() (node, error) { return node{}, c.zk.Delete(path, -1) })
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
}

// TestOpenChroot: a chroot below which anybody may delete is no place to found in.
func TestOpenChroot(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	other, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if err := other.ensureRoot(patience(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.zk.SetACL(c.place.Chroot, zk.WorldACL(zk.PermAll), -1); err != nil {
		t.Fatal(err)
	}
	c.refused(t, c.config("a", coordtest.NewMachine()), ErrDenied, c.place.Chroot, "anybody")
}

// fails waits until a member stops by itself, and wants its reason.
func fails(t *testing.T, l *Log, want error, words ...string) {
	t.Helper()
	select {
	case <-l.Failed():
	case <-time.After(coordtest.Patience):
		t.Fatalf("%s goes on", l.cfg.Site)
	}
	err := l.Err()
	wants(t, err, want)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\ndoes not say %q", err, w)
		}
	}
}

// TestDeletedByHand: an entry is missing in the middle. Who needs it waits for the leader's snapshot and goes on from
// there; nobody stops.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b")
	for range 5 {
		if err := all[0].say(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	conn := c.leader(t).c
	if _, err := conn.write(patience(t), conn.remove(tree.EntryPath(3))); err != nil {
		t.Fatal(err)
	}
	c.open(t, "cc")
	talk(t, all, func() {})
}

// TestLastEntryDeleted: the leader finds that the entry before its own is gone, and writes it once more.
func TestLastEntryDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour // nothing moves by itself
	c.place.Session = 20 * time.Second
	all := c.open(t, "a")
	l := c.leader(t)
	n, was := l.settled(t)
	if _, err := l.c.write(patience(t), l.c.remove(tree.EntryPath(n))); err != nil {
		t.Fatal(err)
	}
	if err := all[0].say(patience(t)); err != nil {
		t.Error(err)
	}
	if is, err := l.c.get(patience(t), tree.EntryPath(n)); err != nil || !bytes.Equal(is.data, was) {
		t.Errorf("entry %d has %d bytes, and had %d: %v", n, len(is.data), len(was), err)
	}
}

// settled returns the last entry that a leader has written, and its bytes.
func (l *Log) settled(t *testing.T) (n uint64, data []byte) {
	t.Helper()
	r := l.leaderTerm.Load()
	r.mu.Lock()
	n = r.next - 1 // it may be on its way
	r.mu.Unlock()
	if err := l.machine.position.Wait(patience(t), n); err != nil {
		t.Fatal(err)
	}
	is, err := l.c.get(patience(t), tree.EntryPath(n))
	if err != nil || !is.found {
		t.Fatal(err)
	}
	return n, is.data
}

// TestCorrupted: of what is not as it was written nothing is applied; a new member waits until the leader has written
// it again.
func TestCorrupted(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, c *client, p tree.Pointer){
		"chunk": func(t *testing.T, c *client, p tree.Pointer) {
			n, err := c.get(t.Context(), p.Chunk(0))
			if err != nil {
				t.Fatal(err)
			}
			n.data[len(n.data)/2] ^= 1
			overwrite(t, c, p.Chunk(0), n.data)
		},
		"chunk deleted": func(t *testing.T, c *client, p tree.Pointer) {
			if _, err := c.write(t.Context(), c.remove(p.Chunk(0))); err != nil {
				t.Fatal(err)
			}
		},
		"entry": func(t *testing.T, c *client, p tree.Pointer) {
			overwrite(t, c, tree.EntryPath(p.Entry+1), []byte("garbage"))
		},
		"pointer": func(t *testing.T, c *client, _ tree.Pointer) {
			overwrite(t, c, tree.SnapshotPath, []byte("garbage"))
		},
		"pointer deleted": func(t *testing.T, c *client, _ tree.Pointer) {
			if _, err := c.write(t.Context(), c.remove(tree.SnapshotPath)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			all := c.open(t, "a", "b")
			for range 5 {
				if err := all[0].say(patience(t)); err != nil {
					t.Fatal(err)
				}
			}
			c.Compact(t)
			for range 5 {
				if err := all[0].say(patience(t)); err != nil {
					t.Fatal(err)
				}
			}
			l := c.leader(t)
			p, _, err := l.c.pointer(patience(t))
			if err != nil {
				t.Fatal(err)
			}
			damage(t, l.c, p)
			c.open(t, "cc")
			talk(t, all, func() {})
			for _, s := range all {
				if err := s.l.Err(); err != nil {
					t.Errorf("%s has stopped: %v", s.site, err)
				}
			}
		})
	}
}

func overwrite(t *testing.T, c *client, path string, data []byte) {
	t.Helper()
	if _, err := c.write(t.Context(), c.set(path, data, -1)); err != nil {
		t.Fatal(err)
	}
}

// TestFounderCrashes: a founder that crashed between its claim and the tree founds
// when it starts again, as a member in use.
func TestFounderCrashes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	cfg := c.config("a", coordtest.NewMachine())
	id := strings.Repeat("01", 16)
	m := (&Log{cfg: cfg}).member(tree.Charter{Federation: id, Lineage: id})
	m.Founder = true
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.save(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	cfg.Bootstrap, cfg.Federation = false, [16]byte{}
	for range 2 {
		l, err := Open(patience(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if l.Federation() != [16]byte(bytes.Repeat([]byte{1}, 16)) {
			t.Errorf("federation %x", l.Federation())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEntryChanged: who changes an entry by hand changes nothing: it is as before at the next append.
func TestEntryChanged(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour
	a := c.open(t, "a")[0]
	n, was := a.l.settled(t)
	overwrite(t, a.l.c, tree.EntryPath(n), []byte("changed"))
	if err := a.say(patience(t)); err != nil {
		t.Error(err)
	}
	if is, err := a.l.c.get(patience(t), tree.EntryPath(n)); err != nil || !bytes.Equal(is.data, was) {
		t.Errorf("entry %d has %d bytes, and had %d: %v", n, len(is.data), len(was), err)
	}
}

// TestPartsDeleted: an entry in parts names the znode that its parts lack.
func TestPartsDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour
	a := c.open(t, "a")[0]
	if _, err := a.l.c.write(patience(t), a.l.c.remove(tree.PartsPath)); err != nil {
		t.Fatal(err)
	}
	jobs := longJobs(12, 1)
	_, _ = a.l.Propose(patience(t), command.Command{
		ID:   command.ID{Site: "a", Incarnation: a.inc, Seq: 1},
		Body: &command.Submit{Jobs: jobs},
	})
	fails(t, a.l, tree.ErrDamaged, c.place.Chroot+tree.PartsPath+" is missing")
}

// TestTreeCreatedAgain: an append in flight that meets another tree, with equal numbers and
// a /lead of an equal version, lands nowhere.
func TestTreeCreatedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour
	s := c.open(t, "a")[0]
	r, n := s.l.leaderTerm.Load(), s.l.machine.position.Now()
	mark := s.l.c.mark
	c.Cut("a")
	other, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	wipe(t, other, c.place.Chroot)
	seed := Seed{Federation: [16]byte{1}, Lineage: [16]byte{3}, Entry: n, State: strings.NewReader("another state")}
	if err := Found(patience(t), c.place, seed, testLogger()); err != nil {
		t.Fatal(err)
	}
	for range r.version {
		overwrite(t, other, tree.LeadPath, tree.Encode(tree.LeadRecord{Term: r.term}))
	}
	before := dump(t, c.place)
	other.mark = mark
	late := &leaderTerm{c: other, version: r.version}
	for _, parts := range [][][]byte{nil, {[]byte("part")}} {
		_, err = late.write(t.Context(), &flight{n: n + 1, data: []byte("late"), parts: parts})
		says(t, err, ErrIdentity, c.place.Chroot+mark, "another tree")
	}
	if after := dump(t, c.place); after != before {
		t.Errorf("the tree was\n%s\nand is\n%s", before, after)
	}
}

// TestTreeGone: a founder whose tree was deleted does not found the same federation
// once more, behind the others' backs.
func TestTreeGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.oneStopped(t)
	conn, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	wipe(t, conn, c.place.Chroot)
	c.refused(t, c.config("a", coordtest.NewMachine()), ErrNoTree, c.place.Chroot+tree.FederationPath, "bring the ensemble's data back")
}

// TestDigestRefused: an ensemble that takes no digest credentials is told from one
// that does not answer.
func TestDigestRefused(t *testing.T) {
	t.Parallel()
	p := place()
	p.Servers = []string{standalone(t, "-Dzookeeper.DigestAuthenticationProvider.enabled=false")}
	ctx, cancel := context.WithTimeout(patience(t), time.Second)
	defer cancel()
	_, err := Inspect(ctx, p, 1, testLogger())
	says(t, err, ErrDenied, "digest credentials", "name another ensemble")
}

// standalone is the address of a server of its own kind, for one test.
func standalone(t *testing.T, flags ...string) string {
	t.Helper()
	one, err := ensemble.New(ensemble.Config{
		Dir: t.TempDir(), Servers: 1, Tick: 100 * time.Millisecond, HeapMiB: 64,
		Flags: append(slices.Clone(ensemble.Brief), flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Stop)
	if err := one.Start(patience(t)); err != nil {
		t.Fatal(err)
	}
	return one.Addrs()
}

// TestLongSessions: an ensemble that gives longer sessions than were asked for is
// known.
func TestLongSessions(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.place.Session = 150 * time.Millisecond // the ensemble's shortest is 200 ms
	l := c.open(t, "a")[0].l
	if got := time.Duration(l.c.dialer.granted.Load()); got != 200*time.Millisecond {
		t.Errorf("sessions of %v", got)
	}
}

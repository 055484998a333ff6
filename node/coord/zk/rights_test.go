//go:build zookeeper

package zk

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// stranger connects without being a member, and gives a znode to somebody else;
// perms are what is left to the brokers.
func (c *cluster) giveAway(t *testing.T, path string, perms int32) {
	t.Helper()
	conn, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	acl := zk.DigestACL(zk.PermAll, "somebody", "else")
	if perms != 0 {
		acl = append(acl, zk.DigestACL(perms, c.place.User, c.place.Password)...)
	}
	if err := conn.ensureRoot(patience(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.zk.SetACL(path, acl, -1); err != nil {
		t.Fatal(err)
	}
}

// TestDeniedAbove: a chroot that may not be made names the znode that was to be made
// and the one whose ACL forbids it; nothing is left.
func TestDeniedAbove(t *testing.T) {
	t.Parallel()
	for _, perms := range []int32{0, zk.PermRead} {
		for _, below := range []string{"/deep", "/deep/deeper"} {
			c := newCluster(t)
			above := c.place.Chroot
			c.giveAway(t, above, perms)
			c.place.Chroot = above + below
			c.refused(t, c.config("a", coordtest.NewMachine()), ErrDenied, "create "+above+"/deep: ", "the ACL of "+above)
		}
	}
}

// TestDeniedWithin: whichever znode of a tree becomes somebody else's, a leader that
// runs, a broker that starts, or both say so, by the path of that very znode.
func TestDeniedWithin(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]func(l *Log) string{
		"charter":   func(*Log) string { return tree.FederationPath },
		"mark":      func(l *Log) string { return l.c.mark },
		"lead":      func(*Log) string { return tree.LeadPath },
		"log":       func(*Log) string { return tree.LogPath },
		"entry":     func(*Log) string { return tree.EntryPath(3) },
		"last":      func(l *Log) string { return tree.EntryPath(l.machine.position.Now()) },
		"pointer":   func(*Log) string { return tree.SnapshotPath },
		"snapshots": func(*Log) string { return tree.SnapshotsPath },
		"members":   func(*Log) string { return tree.MembersPath },
		"voters":    func(*Log) string { return tree.VotersPath },
		"present":   func(*Log) string { return tree.PresentPath },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.time.tick = time.Hour // nothing moves by itself
			a := c.open(t, "a")[0]
			for range 3 {
				if err := a.say(patience(t)); err != nil {
					t.Fatal(err)
				}
			}
			whole := c.place.Chroot + path(a.l)
			c.giveAway(t, whole, 0)
			noticed := 0
			for _, err := range []error{c.startDenied(t), a.trouble(t)} {
				if err != nil && !transient(err) { // the leader may have stopped meanwhile
					says(t, err, ErrDenied, whole)
					noticed++
				}
			}
			if noticed == 0 {
				t.Error("nobody noticed")
			}
		})
	}
}

// startDenied starts a second member, and returns what it stops of, if it does.
func (c *cluster) startDenied(t *testing.T) error {
	t.Helper()
	l, err := Open(patience(t), c.config("b", coordtest.NewMachine()))
	if err != nil {
		return err
	}
	defer l.Close()
	select {
	case <-l.Failed():
	case <-time.After(2 * time.Second):
	}
	return l.Err()
}

// trouble has the leadership append and write a snapshot, and returns what stood in the way.
func (s *speaker) trouble(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = s.say(ctx) // it ends with the leader
	if r := s.l.leaderTerm.Load(); r != nil && s.l.Err() == nil {
		return s.l.compact(r, 0)
	}
	return s.l.Err()
}

// TestQuota: a quota that somebody set, and that is used up, is told as one.
func TestQuota(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.place.Servers = []string{standalone(t, "-Dzookeeper.enforceQuota=true")}
	a := c.open(t, "a")[0]
	limits := "/zookeeper/quota" + c.place.Chroot
	at := ""
	for _, part := range strings.Split(limits, "/")[1:] {
		at += "/" + part
		if _, err := a.l.c.zk.Create(at, nil, 0, zk.WorldACL(zk.PermAll)); err != nil &&
			!errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"zookeeper_limits": "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=20", "zookeeper_stats": "count=0,bytes=0"} {
		if _, err := a.l.c.zk.Create(limits+"/"+name, []byte(text), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	for a.l.Err() == nil {
		_ = a.say(patience(t))
	}
	says(t, a.l.Err(), ErrDenied, c.place.Chroot+tree.LogPath, "quota", "raised")
}

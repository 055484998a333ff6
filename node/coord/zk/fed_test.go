//go:build zookeeper

package zk

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// listening opens three members, and waits until those that do not lead are handed
// entries.
func (c *cluster) listening(t *testing.T) (all []*speaker, lead, other *speaker) {
	t.Helper()
	all = c.open(t, "a", "b", "cc")
	lead, others := c.split(t, all)
	for _, s := range others {
		s.awaitFeed(t, lead)
	}
	return all, lead, others[0]
}

// split says who of them leads.
func (c *cluster) split(t *testing.T, all []*speaker) (lead *speaker, others []*speaker) {
	t.Helper()
	now := c.leader(t)
	for _, s := range all {
		if s.l == now {
			lead = s
		} else {
			others = append(others, s)
		}
	}
	return lead, others
}

// awaitFeed has the leadership speak until a member is handed what it says.
func (s *speaker) awaitFeed(t *testing.T, lead *speaker) {
	t.Helper()
	for end := time.Now().Add(coordtest.Patience); ; {
		if err := lead.say(patience(t)); err != nil {
			t.Fatal(err)
		}
		// Looked at only: what were taken here, its reader would miss.
		s.l.receiver.mu.Lock()
		handed := s.l.receiver.next != 0
		s.l.receiver.mu.Unlock()
		if handed || s.l.Status().IsLead { // who has come to lead by now hears nobody
			return
		}
		if time.Now().After(end) {
			t.Fatal("no feed")
		}
	}
}

// TestFeed: a member that reaches no server of the ensemble hears from the leader what
// was appended.
func TestFeed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.net.Slow = 0 // Lag leaves the feeds alone
	c.place.Session = 20 * time.Second
	all, lead, other := c.listening(t)
	c.Lag(other.site)
	if err := lead.say(patience(t)); err != nil {
		t.Fatal(err)
	}
	if err := other.l.machine.position.Wait(patience(t), lead.l.machine.position.Now()); err != nil {
		t.Errorf("%s stands at entry %d, the leader at %d: %v", other.site, other.m.Index(), lead.m.Index(), err)
	}
	if other.l.c.up.Load() {
		t.Error("it has a connection: the test shows nothing")
	}
	c.Heal(other.site)
	same(t, all)
}

// TestSilentFeed: a leader that appends and hands nothing out is found out by a look at
// the tree, and asked for another feed.
func TestSilentFeed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all, lead, other := c.listening(t)
	r := lead.l.leaderTerm.Load()
	r.mu.Lock()
	clear(r.feeds) // their connections stay
	r.mu.Unlock()
	talk(t, all, func() {})
	other.awaitFeed(t, lead)
	same(t, all)
}

// TestGapInFeed: entries that a feed leaves out are read from the tree.
func TestGapInFeed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all, lead, other := c.listening(t)
	r := lead.l.leaderTerm.Load()
	r.mu.Lock()
	last := r.next + 9
	r.mu.Unlock()
	r.sendToFeeds(&flight{n: last, data: (&tree.Entry{At: time.Now()}).EncodeWhole()})
	talk(t, all, func() {})
	other.awaitFeed(t, lead)
	same(t, all)
}

// TestNothingUnsureIsFed: of an entry that the fence refuses nobody is told.
func TestNothingUnsureIsFed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.time.tick = time.Hour
	all := c.open(t, "a", "b", "cc")
	old := c.leader(t)
	r := old.leaderTerm.Load()
	f := &feed{kick: make(chan struct{}, 1)}
	r.addFeed(f)
	n, err := old.c.get(patience(t), tree.LeadPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.c.write(patience(t), old.c.set(tree.LeadPath, n.data, n.stat.Version)); err != nil {
		t.Fatal(err)
	}
	header := []byte("refused")
	batch := command.AppendBatch(nil, r.term, 0, nil, nil)
	if o, _ := (backend{old}).Append(r.term, batch, header)(); o != relay.Refused {
		t.Errorf("a deposed leader's append is %v, not refused", o)
	}
	talk(t, all, func() {})
	// What the members appended before the fence changed may rightly be among them.
	frames, _ := f.takeFrames()
	for _, b := range frames {
		if n, e, err := parseFed(b[4:]); err != nil || bytes.Equal(e.Header, header) {
			t.Errorf("entry %d of header %q was handed out: %v", n, e.Header, err)
		}
	}
}

// TestFeedsEndWithTheTerm: a former leader hands out nothing, and the next one is asked.
func TestFeedsEndWithTheTerm(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all, lead, _ := c.listening(t)
	former := lead.l.leaderTerm.Load()
	c.MoveLead(t)
	ctx, cancel := context.WithTimeout(t.Context(), coordtest.Patience)
	defer cancel()
	for left := 1; left > 0; {
		former.mu.Lock()
		left = len(former.feeds)
		former.mu.Unlock()
		if ctx.Err() != nil {
			t.Fatalf("%d feeds of a former leader", left)
		}
		<-time.After(time.Millisecond)
	}
	lead, _ = c.split(t, all)
	for _, s := range all { // the leadership may move on meanwhile
		s.awaitFeed(t, lead)
	}
}

// TestFeedIsForMembers: a leader hands nothing to who is none.
func TestFeedIsForMembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.open(t, "a")[0]
	stranger := relay.Dialer{Net: &relay.Network{}, Site: "stranger"}
	conn, err := stranger.Dial(patience(t), relay.Peer{Site: "a", Addr: a.l.Addr()}, relay.KindFeed, a.l.line)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
	if n, err := io.Copy(io.Discard, conn); n > 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

//go:build zookeeper

package zk

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// TestHolesThatNobodyFills: an entry that an elector has signed far behind the end of the log, or one of the leader's
// that came behind somebody's garbage, does not keep leaders from opening their terms: once each voter that is
// connected has found that it has not what is missing, the log ends there.
func TestHolesThatNobodyFills(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"signed far behind", "of the leader behind garbage"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSecured(t)
			c.time.tick = time.Hour
			all := c.federation(t, "a", "b", "cc")
			lead := c.leader(t)
			w := c.writer(t, lead)
			term := all[0].r.Term()
			n, _ := lead.settled(t)
			if name == "signed far behind" {
				key := coordtest.KeyOf("cc")
				w.put(t, tree.EntryPath(n+1000), w.entry(n+1000, 1, "cc", &key))
				lead.handOver(patience(t)) // its turn is over
			} else {
				key := coordtest.KeyOf(lead.cfg.Site)
				w.put(t, tree.EntryPath(n+1), []byte("garbage"))
				w.put(t, tree.EntryPath(n+2), w.entry(n+2, term, lead.cfg.Site, &key))
				overwrite(t, w.client, tree.LeadPath, []byte("garbage"))
			}
			goOn(t, all)
		})
	}
}

// TestSnapshotOfAnother: an elector that does not lead signs an old state as one of further on: nobody who has a state
// gives it up for that.
func TestSnapshotOfAnother(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.time.tick = time.Hour
	all := c.federation(t, "a", "b", "cc")
	c.Compact(t)
	lead := c.leader(t)
	liar := all[1]
	if lead == liar.l {
		liar = all[2]
	}
	w := c.writer(t, lead)
	p, _, err := w.pointer(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	goOn(t, all)
	n, _ := lead.settled(t)
	q := tree.Pointer{Entry: n + 50, Term: p.Term, Bytes: p.Bytes, Sums: p.Sums}
	for i := range p.Sums {
		chunk, err := w.get(patience(t), p.Chunk(i))
		if err != nil {
			t.Fatal(err)
		}
		w.put(t, q.Chunk(i), chunk.data)
	}
	q.Sign(lead.line, liar.site, coordtest.KeyOf(liar.site).Sign)
	overwrite(t, w.client, tree.SnapshotPath, tree.Encode(q))
	for range 3 {
		goOn(t, all)
	}
	for _, h := range all {
		if at := h.l.machine.position.Now(); h.r.Index() != at || at < n || h.l.Err() != nil {
			t.Errorf("%s is at %d with the state of %d: %v", h.site, at, h.r.Index(), h.l.Err())
		}
	}
}

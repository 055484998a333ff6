//go:build zookeeper

package zk

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/replica"
)

// honest is a member with the replicated state of a federation with a roster.
type honest struct {
	l    *Log
	r    *replica.Replica
	site string
	inc  uint64
	seq  uint64
}

// say proposes a command of the site.
func (h *honest) say(t *testing.T, body command.Body) command.Result {
	t.Helper()
	id := command.ID{Site: h.site}
	switch body.(type) {
	case *command.Genesis, *command.Register:
	default:
		h.seq++
		id.Incarnation, id.Seq = h.inc, h.seq
	}
	r, err := h.l.Propose(patience(t), command.Command{ID: id, Ack: max(h.seq, 1) - 1, Body: body})
	if err != nil || r[0].Code != command.OK {
		t.Fatalf("%s says %T: %v, %v", h.site, body, r, err)
	}
	return r[0]
}

func (c *cluster) openHonest(t *testing.T, site string) *honest {
	t.Helper()
	h := &honest{r: replica.NewReplica(), site: site}
	h.r.KeepCheckpoints()
	cfg := c.config(site, h.r)
	cfg.Node = coordtest.KeyOf(site).Public().Node()
	var err error
	if h.l, err = Open(patience(t), cfg); err != nil {
		t.Fatalf("open %s: %v", site, err)
	}
	c.mu.Lock()
	c.logs[site] = h.l
	c.mu.Unlock()
	c.net.Join(site, h.l.Addr())
	return h
}

func (h *honest) register(t *testing.T) {
	t.Helper()
	h.inc = h.say(t, &command.Register{
		Node: coordtest.KeyOf(h.site).Public().Node(), Boot: [16]byte{byte(h.inc) + 1}, HTTP: "h:1",
		Peer:       h.l.Addr(),
		MaxVersion: command.FirstVersion, After: h.inc,
	}).Incarnation
	h.seq = 0
}

// federation opens members that have admitted each other, all of them electors.
func (c *cluster) federation(t *testing.T, sites ...string) []*honest {
	t.Helper()
	founder := c.openHonest(t, sites[0])
	founder.say(t, &command.Genesis{
		Federation: c.fed, Params: command.DefaultParams(), Founder: signature.Key(coordtest.KeyOf(sites[0]).Public()),
	})
	founder.register(t)
	for _, site := range sites[1:] {
		invited := identity.FromSeed(sha256.Sum256([]byte("invitation of " + site)))
		founder.say(t, &command.Invite{
			Key: signature.Key(invited.Public()), Site: site, Elector: true, ForMs: 3_600_000,
		})
		a := &command.Admit{
			Invitation: signature.Key(invited.Public()), Site: site, Key: signature.Key(coordtest.KeyOf(site).Public()),
		}
		signed := a.Signed(c.fed)
		copy(a.ByInvitation[:], invited.Sign(command.SignedAdmission, signed...))
		copy(a.ByKey[:], coordtest.KeyOf(site).Sign(command.SignedAdmission, signed...))
		founder.say(t, a)
	}
	all := []*honest{founder}
	for _, site := range sites[1:] {
		all = append(all, c.openHonest(t, site))
	}
	for _, h := range all[1:] {
		h.register(t)
	}
	return all
}

// goOn wants all members to have proposals executed, and the same history and state.
func goOn(t *testing.T, all []*honest) {
	t.Helper()
	for _, h := range all {
		h.say(t, &command.Addresses{HTTP: fmt.Sprint(h.site, h.seq), Peer: h.l.Addr()})
	}
	for ctx := patience(t); ; {
		hashes, entries := map[[32]byte]bool{}, map[uint64]bool{}
		for _, h := range all {
			if _, err := h.l.Sync(ctx); err != nil || h.l.Err() != nil {
				t.Fatalf("%s does not go on: %v, %v", h.site, err, h.l.Err())
			}
			entry, hash := h.r.Hash()
			hashes[hash], entries[entry] = true, true
		}
		if len(entries) == 1 {
			if len(hashes) != 1 {
				t.Fatalf("different states at entry %v", entries)
			}
			return
		}
	}
}

// writer is somebody who has the password, and perhaps a member's key.
type writer struct {
	*client
	c *cluster
	l *Log // of whom it knows what it needs to know
}

func (c *cluster) writer(t *testing.T, of *Log) *writer {
	t.Helper()
	w, err := connect(c.place, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return &writer{w, c, of}
}

// put writes a znode, whatever is there.
func (w *writer) put(t *testing.T, path string, data []byte) {
	t.Helper()
	for ctx := patience(t); ; {
		_, _ = w.write(ctx, w.remove(path))
		if _, err := w.write(ctx, w.create(path, data, 0)); err == nil {
			return
		} else if ctx.Err() != nil {
			t.Fatalf("put %s: %v", path, err)
		}
	}
}

// entry makes an entry of a term, which a key signs as a site's if there is one.
func (w *writer) entry(n, term uint64, site string, key *identity.Key, cmds ...[]byte) []byte {
	e := tree.Entry{At: time.UnixMilli(5), Header: []byte("no header")}
	var bundles []command.Bundle
	if key != nil && len(cmds) > 0 {
		bundles = append(bundles, command.SignBundle(w.c.fed, site, len(cmds), bytes.Join(cmds, nil), key.Sign))
	}
	e.Batch = command.AppendBatch(nil, term, 1<<40, cmds, bundles)
	if key != nil {
		e.Sign(w.l.line, n, site, signature.Key{}, key.Sign)
	}
	return e.EncodeWhole()
}

// TestWritersOfThePassword: whoever has the password writes what no elector has signed for its place. All members pass
// it over, none stops, and what they say is executed.
func TestWritersOfThePassword(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.time.tick, c.place.Session = time.Hour, 20*time.Second // nothing moves by itself
	all := c.federation(t, "a", "b", "cc")
	lead := c.leader(t)
	w := c.writer(t, lead)
	stranger, rival := coordtest.KeyOf("stranger"), coordtest.KeyOf("cc")
	if lead.cfg.Site == "cc" {
		rival = coordtest.KeyOf("b")
	}
	rivalSite := map[bool]string{true: "b", false: "cc"}[lead.cfg.Site == "cc"]
	term := all[0].r.Term()
	for name, data := range map[string]func(n uint64) []byte{
		"garbage":        func(uint64) []byte { return []byte("garbage") },
		"nothing":        func(uint64) []byte { return nil },
		"much":           func(uint64) []byte { return make([]byte, 1_000_000) },
		"unsigned":       func(n uint64) []byte { return w.entry(n, term, "", nil) },
		"stranger":       func(n uint64) []byte { return w.entry(n, term, lead.cfg.Site, &stranger) },
		"absurd term":    func(n uint64) []byte { return w.entry(n, 1<<60, lead.cfg.Site, &stranger) },
		"another's Lead": func(n uint64) []byte { return w.entry(n, term+1, "", nil, command.EncodeLead("b", term+1)) },
		"not its term":   func(n uint64) []byte { return w.entry(n, term, rivalSite, &rival) },
		"a term too far": func(n uint64) []byte { return w.entry(n, term+fsm.MaxTermStep+1, rivalSite, &rival) },
		"a past entry": func(uint64) []byte {
			_, last := lead.settled(t)
			return last
		},
		"missing parts": func(uint64) []byte {
			e := tree.Entry{Batch: make([]byte, 2*tree.MaxPart)}
			data, _ := e.Encode()
			return data
		},
	} {
		n, _ := lead.settled(t)
		w.put(t, tree.EntryPath(n+1), data(n+1))
		w.put(t, tree.EntryPath(n+7), data(n+7))
		for _, path := range []string{tree.EntryPath(n + 1), tree.EntryPath(n)} {
			if _, err := w.write(patience(t), w.create(path+"/below", nil, 0)); err != nil {
				t.Fatal(err)
			}
		}
		goOn(t, all)
		if c.leader(t) != lead || all[0].r.Term() != term {
			t.Fatalf("%s: another leader, or term %d", name, all[0].r.Term())
		}
	}
	c.Compact(t) // what is below an entry does not keep it
	for _, h := range all {
		if got := h.r.Term(); got != term {
			t.Errorf("%s is in term %d, not %d", h.site, got, term)
		}
	}
}

// TestFalseLeadership: what is written in the place of the leader's record, or of who holds the leadership, costs a
// moment; it neither ends the group nor its terms.
func TestFalseLeadership(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.time.tick = time.Hour
	all := c.federation(t, "a", "b", "cc")
	w := c.writer(t, c.leader(t))
	stranger := coordtest.KeyOf("stranger")
	forged := tree.LeadRecord{Term: 5, Moved: "an export"}
	forged.Sign(c.fed, "a", stranger.Sign)
	for _, data := range [][]byte{
		[]byte("garbage"), nil, tree.Encode(tree.LeadRecord{Term: 1 << 60}),
		tree.Encode(tree.LeadRecord{Term: 1 << 62, Site: "b", Peer: "127.0.0.1:1", Nonce: "b/1"}),
		tree.Encode(tree.LeadRecord{Term: 7, Moved: "an export"}), tree.Encode(forged),
	} {
		overwrite(t, w.client, tree.LeadPath, data)
		goOn(t, all)
	}
	w.put(t, tree.LeaderPath, []byte("nobody"))
	goOn(t, all)
	if term := all[0].r.Term(); term > 20 {
		t.Errorf("term %d", term)
	}
}

// TestElectorTakesATerm: an elector that writes entries of a next term without having been elected is a leader as any
// other until the next one.
func TestElectorTakesATerm(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.time.tick = time.Hour
	all := c.federation(t, "a", "b", "cc")
	lead := c.leader(t)
	w := c.writer(t, lead)
	for range 3 {
		lead = c.leader(t)
		site := map[bool]string{true: "b", false: "cc"}[lead.cfg.Site == "cc"]
		key := coordtest.KeyOf(site)
		n, _ := lead.settled(t)
		term := all[0].r.Term() + 100
		w.put(t, tree.EntryPath(n+1), w.entry(n+1, term, site, &key, command.EncodeLead(site, term)))
		goOn(t, all)
		if now := all[0].r.Term(); now <= term {
			t.Errorf("term %d after one of %d", now, term)
		}
	}
}

// lead has an elector that runs no broker write the next entry, of a term of its own, which moves log time by a minute.
// written says that it was before the leader.
func (w *writer) lead(t *testing.T, site string, of *honest) (n, term uint64, written []byte) {
	t.Helper()
	for key := coordtest.KeyOf(site); ; {
		last, _ := w.c.leader(t).settled(t)
		n, term = last+1, of.r.Term()+1
		data := w.entry(n, term, site, &key, command.EncodeLead(site, term), command.EncodeLead(site, term+1))
		if _, err := w.write(patience(t), w.create(tree.EntryPath(n), data, 0)); err != nil {
			continue
		}
		of.say(t, &command.Addresses{HTTP: "h:1", Peer: of.l.Addr()})
		if is, err := w.get(patience(t), tree.EntryPath(n)); err == nil && bytes.Equal(is.data, data) {
			return n, term, data
		}
	}
}

// TestTwoSignedEntries: an elector that signs two entries of one number, and has the tree show one to some and the
// other to others, is not kept from that; but the members find that their histories differ.
func TestTwoSignedEntries(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	all := c.federation(t, "a", "b", "cc")
	w := c.writer(t, c.leader(t))
	for _, gone := range []string{"cc", "b"} {
		if err := c.logs[gone].Close(); err != nil {
			t.Fatal(err)
		}
	}
	a := all[0]
	n, term, _ := w.lead(t, "cc", a)
	key := coordtest.KeyOf("cc")
	w.put(t, tree.EntryPath(n), w.entry(n, term, "cc", &key, command.EncodeLead("cc", term)))
	b := c.openHonest(t, "b") // it reads all of the log
	if _, err := b.l.Sync(patience(t)); err != nil {
		t.Fatal(err)
	}
	w.lead(t, "cc", a)
	await(t, "a finds that b differs", func() bool {
		return a.l.Compared().Differ["b"] > 0 && (b.l.Compared().Differ["a"] > 0 || b.l.Err() != nil)
	})
}

// TestFalseSnapshot: a member that has nothing but the tree takes no state that no elector has signed.
func TestFalseSnapshot(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.time.tick = time.Hour
	all := c.federation(t, "a", "b", "cc")
	c.Compact(t)
	w := c.writer(t, c.leader(t))
	stranger := coordtest.KeyOf("stranger")
	chunk := []byte("a state of mine")
	for _, signed := range []bool{false, true} {
		lead := c.leader(t)
		away := all[1]
		if lead == away.l {
			away = all[2]
		}
		if err := away.l.Close(); err != nil {
			t.Fatal(err)
		}
		n, _ := lead.settled(t)
		p := tree.Pointer{Entry: n, Term: 1, Bytes: int64(len(chunk)), Sums: []tree.Sum{tree.SumOf(chunk)}}
		if signed {
			p.Sign(lead.line, "a", stranger.Sign)
		}
		w.put(t, p.Chunk(0), chunk)
		overwrite(t, w.client, tree.SnapshotPath, tree.Encode(p))
		again := c.openHonest(t, away.site)
		away.l, away.r = again.l, again.r
		goOn(t, all)
	}
}

package fsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// What a bundle's site has not signed leaves no trace: not its own commands with another's key, not another site's with
// its own, not those behind a foreign one in the same bundle, not one signed for another federation, nor one whose
// bytes were changed. What stands beside it is executed.
func TestForgedCommandsLeaveNoTrace(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	submit := func(site string) command.Command {
		return w.cmd(site, &command.Submit{Jobs: []command.JobSpec{w.job(site, 1)}})
	}
	ofB, mixed := submit("b"), submit("b")
	w.seq["b"] = 0
	elsewhere := w.bundle(w.secret("b"), ofB)
	elsewhere.Signature = command.Sign([16]byte{8}, elsewhere.Signed, w.signWith("b"))
	changed := w.bundle(w.secret("b"), ofB)
	for name, forged := range map[string]*command.Batch{
		"by another key":            w.batchBy("c", ofB),
		"by a member's key":         oneOf(ofB, asSite("c", w.bundle(w.secret("c"), ofB))),
		"in no bundle":              {Commands: []command.Command{ofB}},
		"for another federation":    oneOf(ofB, elsewhere),
		"with changed bytes":        oneOf(mixed, asBytes(changed, mixed)),
		"by one who is no member":   oneOf(ofB, asSite("z", w.bundle(w.secret("z"), ofB))),
		"beside the bundle's own":   w.batchBy("c", w.cmd("c", &command.Leave{}), ofB),
		"of the bundle, by another": w.batchBy("c", ofB, w.cmd("c", &command.Leave{})),
	} {
		forged.Term, forged.Elapsed = w.term, w.base
		before := len(w.s.sites)
		results, err := w.s.Apply(forged)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range forged.Commands {
			if c.ID.Site == "b" && results[i].Code != command.NotSigned {
				t.Errorf("%s: %v", name, results[i].Code)
			}
		}
		if _, known := w.s.Result(ofB.ID); known || len(w.s.sites) != before || len(w.s.byName["b"].nums) > 0 {
			t.Errorf("%s: it has left a trace", name)
		}
		w.check()
	}
	if r := w.apply(ofB)[0]; r.Code != command.OK {
		t.Errorf("by b's key: %v", r.Code)
	}
}

// signWith returns what signs with the key of a name.
func (w *world) signWith(name string) func(string, ...[]byte) []byte {
	return func(purpose string, parts ...[]byte) []byte {
		s := w.sign(name, purpose, parts)
		return s[:]
	}
}

func oneOf(c command.Command, b command.Bundle) *command.Batch {
	return &command.Batch{Commands: []command.Command{c}, Bundles: []command.Bundle{b}}
}

func asSite(site string, b command.Bundle) command.Bundle {
	b.Site = site
	return b
}

func asBytes(b command.Bundle, c command.Command) command.Bundle {
	b.Signed = command.Append(nil, c)
	return b
}

// What only the leader of the term may say is refused from anybody else, and from the leader before it.
func TestOnlyTheLeaderJudges(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	lost := func() *command.SiteLost { return &command.SiteLost{Site: "c", Incarnation: w.inc["c"], Term: w.term} }
	judgements := func() []command.Body {
		return []command.Body{
			lost(), &command.Suspect{Site: "c", Incarnation: w.inc["c"], On: true}, &command.Raise{Version: 1},
			&command.GossipKey{Term: w.term, Generation: 1, Key: [32]byte{1}},
		}
	}
	for _, b := range judgements() { // a has founded the federation: it leads the first term
		w.wants("b", b, command.NotLeader)
	}
	w.leads("b")
	for _, b := range judgements() {
		w.wants("a", b, command.NotLeader)
	}
	again := command.Command{ID: command.ID{Site: "b"}, Body: &command.Lead{Term: w.term}}
	late := command.Command{ID: command.ID{Site: "a"}, Body: &command.Lead{Term: w.term}}
	old := command.Command{ID: command.ID{Site: "a"}, Body: &command.Lead{Term: w.term - 1}}
	got := fmt.Sprint(w.apply(again)[0].Code, "; ", w.apply(late)[0].Code, "; ", w.apply(old)[0].Code)
	want := fmt.Sprint(command.OK, "; ", command.NotLeader, "; ", command.OldTerm)
	if got != want || w.s.Leader() != "b" {
		t.Errorf("leads again; another one in the term; in an old one: %s; leader %s", got, w.s.Leader())
	}
	w.must("b", lost())
	if state, _ := w.s.SiteState("c"); state != SiteGone {
		t.Errorf("c is %v", state)
	}
	w.check()
}

// A term whose leader has not introduced itself has none, and a state that was restored knows its leader.
func TestTheLeaderIsOfItsTerm(t *testing.T) {
	w := newFounded(t, "a", "b")
	w.leads("b")
	s, err := Restore(bytes.NewReader(snapshotOf(t, w.s)))
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	w.wants("a", &command.Raise{Version: 1}, command.NotLeader)
	w.must("b", &command.Raise{Version: 1})
	w.term++
	w.wants("b", &command.Raise{Version: 1}, command.NotLeader)
}

// An old registration is executed by nobody again, however long ago it was: what runs at its site stays.
func TestRegistrationsAreNotReplayed(t *testing.T) {
	w := newFounded(t, "a", "b")
	replay := []command.Command{w.registration("b", nil, nil)}
	for range maxBoots + 3 { // so many are remembered by their boots
		replay = append(replay, w.registration("b", nil, nil))
		if r := w.apply(replay[len(replay)-1])[0]; r.Code != command.OK {
			t.Fatal(r.Code)
		}
	}
	_, last := w.s.SiteState("b")
	for i, c := range replay {
		want := command.OldIncarnation
		if i == len(replay)-1 {
			want = command.OK // the latest one again is answered as before
		}
		r := w.apply(c)[0]
		if _, now := w.s.SiteState("b"); r.Code != want || now != last {
			t.Errorf("registration %d of %d again: %v, incarnation %d", i, len(replay), r.Code, now)
		}
	}
}

// Whoever founds signs the genesis with the key that it names.
func TestGenesisIsSigned(t *testing.T) {
	w := newFounded(t, "a")
	genesis := command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: [16]byte{7}, Params: params(), Founder: w.public("a"),
	}}
	unsigned := &command.Batch{Term: 1, Commands: []command.Command{genesis}}
	for _, x := range []struct {
		of   *command.Batch
		want command.Code
	}{
		{unsigned, command.NotSigned},
		{w.batchBy("thief", genesis), command.NotSigned},
		{w.batchBy("a", genesis), command.OK},
	} {
		s := New()
		r, err := s.Apply(x.of)
		if err != nil || r[0].Code != x.want || (s.founded > 0) != (x.want == command.OK) {
			t.Errorf("%v %v, want %v", r, err, x.want)
		}
	}
}

// A bundle is judged by the key that its site has when its first command is executed: one that is replaced in the same
// entry holds no more behind that, and what was verified for the former key does not count.
func TestKeysChangeWithinAnEntry(t *testing.T) {
	w := newFounded(t, "a", "b")
	rekey := w.rekeying("b", "b2", "", "b")
	before := w.cmd("b", &command.Started{})
	change := w.cmd("a", rekey)
	behind := w.cmd("b", &command.Started{})
	byNew := w.cmd("b", &command.Started{})
	batch := &command.Batch{Term: w.term, Commands: []command.Command{before, change, behind, byNew}}
	for i, key := range []string{"b", "a", "b", "b2"} {
		batch.Bundles = append(batch.Bundles, w.bundle(w.secret(key), batch.Commands[i]))
	}
	for i := range batch.Bundles { // as whoever looked beforehand found them
		m, _ := w.s.Member(batch.Bundles[i].Site)
		batch.Bundles[i].IsBy([16]byte{7}, m.Key)
	}
	r, err := w.s.Apply(batch)
	if err != nil || r[0].Code != command.OK || r[1].Code != command.OK || r[2].Code != command.NotSigned ||
		r[3].Code != command.OK {
		t.Errorf("%v %v", r, err)
	}
}

// A site that replaces its key in a bundle has the commands behind that executed: what it signed it has said. One that
// was signed with the former key and comes later is refused whole, at the cost of one look at its signature.
func TestKeysChangeWithinABundle(t *testing.T) {
	w := newFounded(t, "a", "b")
	cmds := []command.Command{w.cmd("b", w.rekeying("b", "b2", "", "b"))}
	for range 4 {
		cmds = append(cmds, w.cmd("b", &command.Started{}))
	}
	r, err := w.s.Apply(w.batchBy("b", cmds...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range r {
		if r[i].Code != command.OK {
			t.Errorf("command %d: %v", i, r[i].Code)
		}
	}
	late := []command.Command{w.cmd("b", &command.Started{}), w.cmd("b", &command.Started{})}
	r, err = w.s.Apply(w.batchBy("b", late...))
	if err != nil || r[0].Code != command.NotSigned || r[1].Code != command.NotSigned {
		t.Errorf("with the former key: %v, %v", r, err)
	}
	r, err = w.s.Apply(w.batchBy("b2", late...))
	if err != nil || r[0].Code != command.OK || r[1].Code != command.OK {
		t.Errorf("with the new key: %v, %v", r, err)
	}
}

// A large bundle that is not its site's is verified once, not for each of its commands: that would hold up every
// replica for minutes.
func TestBadBundlesAreVerifiedOnce(t *testing.T) {
	w := newFounded(t, "a", "b")
	var cmds []command.Command
	for range 2000 {
		cmds = append(cmds, w.cmd("b", &command.Started{}))
	}
	batch := w.batchBy("thief", cmds...)
	by := authors{bundles: batch.Bundles}
	for i := range cmds {
		by.next()
		if code := w.s.authorize(&by, &cmds[i]); code != command.NotSigned {
			t.Fatalf("command %d: %v", i, code)
		}
		by.bundles[0].Proven([16]byte{7}, w.public("b")) // were it asked again, it would be b's
	}
}

// A banned site leads no term.
func TestBannedSitesDoNotLead(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.must("a", &command.Motion{What: command.MotionBan, Site: "c"})
	w.must("b", &command.Motion{What: command.MotionBan, Site: "c"})
	w.term++
	lead := command.Command{ID: command.ID{Site: "c"}, Body: &command.Lead{Term: w.term}}
	if r := w.apply(lead)[0]; r.Code != command.Banned || w.s.Leader() != "" {
		t.Errorf("%v, the leader is %q", r.Code, w.s.Leader())
	}
}

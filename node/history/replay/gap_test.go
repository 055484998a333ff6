package replay_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/history/replay"
	"github.com/cloudshare/cloudshare/node/identity"
)

// realKeys are those that all sites have told.
func realKeys() map[string]identity.Public {
	keys := map[string]identity.Public{}
	for _, site := range siteNames {
		keys[site] = keyOf(site).Public()
	}
	return keys
}

// glued is a federation's file with what another one has kept of later on behind it.
func glued(f, g *federation) string {
	d, e := f.parse(f.export(0, 0)), g.parse(g.export(0, 0))
	d.records = append(d.records[:len(d.records)-1], e.records...)
	return d.write(f.t)
}

// forged is a federation in which site-1 has had more, from some entry on; its sites have other keys, or have not
// signed.
func forged(t *testing.T, jobs int, ownKeys bool) *federation {
	g := newFederation(t, 64<<20)
	g.runMs = 990
	for _, site := range siteNames {
		g.silent[site] = !ownKeys
		if ownKeys {
			g.rekey(site, "forged "+site)
		}
	}
	for range jobs {
		g.job("site-1")
	}
	g.idle(60)
	g.rejoin()
	g.idle(100)
	g.close()
	return g
}

// Whoever writes a state behind a gap, with other keys that sign it, is found by the keys that sites have told; without
// these none of it counts as signed.
func TestForgedStateBehindAGapIsNotBelieved(t *testing.T) {
	f := played(t)
	path := glued(f, forged(t, 40, true))
	r := f.verify(path, replay.Options{Keys: realKeys()})
	if x := r.Difference; x == nil || x.Kind != replay.Key || !strings.Contains(x.What, "behind a gap") ||
		slices.ContainsFunc(r.Members, func(m replay.Member) bool { return m.Checked }) {
		t.Errorf("with the keys: %v, %+v", x, r.Members)
	}
	r = f.verify(path, replay.Options{})
	entry, word := r.FilesWord()
	if r.Difference != nil || len(r.Gaps) != 1 || !word || entry != r.Gaps[0].To || len(r.Signed.SignedBy) > 0 ||
		len(r.Backed.SignedBy) > 0 || !strings.Contains(strings.Join(r.Notes, " "), "counts for nothing") {
		t.Errorf("without: %v, %+v, signed %+v, notes %v", r.Difference, r.Gaps, r.Signed, r.Notes)
	}
}

// The keys are public: a state that has them, and that nobody has signed, is the file's word.
func TestUnsignedStateBehindAGapIsTheFilesWord(t *testing.T) {
	f := played(t)
	r := f.verify(glued(f, forged(t, 40, false)), replay.Options{Keys: realKeys()})
	if _, word := r.FilesWord(); r.Verdict != replay.NotProven || !word || len(r.Signed.SignedBy) > 0 ||
		!r.Members[0].Checked {
		t.Errorf("%v, %+v, signed %+v", r.Difference, r.Gaps, r.Signed)
	}
}

// A state behind a gap that sites have signed by keys of before it is as good as their word; a key that was replaced in
// the gap counts once it was told by another way.
func TestSignedStateBehindAGapIsBacked(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.idle(50)
	before, to := f.dir, f.replica.Index()
	f.rekey("site-2", "next of site-2")
	f.idle(50)
	f.rejoin()
	f.idle(90)
	f.close()
	e := f.parse(f.export(0, 0))
	f.dir = before
	d := f.parse(f.export(0, to))
	d.records = append(d.records[:len(d.records)-1], e.records...)
	path := d.write(t)
	keys := map[string]identity.Public{"site-2": keyOf("next of site-2").Public()}
	for want, o := range map[string]replay.Options{
		"site-1 site-3": {}, "site-1 site-2 site-3": {Keys: keys},
	} {
		r := f.verify(path, o)
		_, word := r.FilesWord()
		if r.Verdict != replay.Proven || word || strings.Join(r.Gaps[0].SignedBy, " ") != want {
			t.Errorf("%s: %v, %+v", want, r.Difference, r.Gaps)
		}
	}
	maps.Copy(keys, realKeys())
	if x := f.verify(path, replay.Options{Keys: keys}).Difference; x == nil || x.Kind != replay.Key || x.Site != "site-2" {
		t.Errorf("the key of before: %+v", x)
	}
}

// A gap leads to no other federation.
func TestAnotherFederationBehindAGap(t *testing.T) {
	f, g := played(t), foundedAs(t, [16]byte{8}, 64<<20)
	g.idle(160)
	g.rejoin()
	g.idle(90)
	g.close()
	x := f.verify(glued(f, g), replay.Options{}).Difference
	if x == nil || x.Kind != replay.State || !strings.Contains(x.What, "of the federation") {
		t.Errorf("%+v", x)
	}
}

// An exported file does not go back to a state of before, which would replace what was compared already.
func TestStateThatGoesBackwards(t *testing.T) {
	f, g := played(t), newFederation(t, 64<<20)
	g.runMs = 70
	g.rejoin()
	for _, site := range siteNames {
		g.silent[site] = true
	}
	g.idle(50)
	g.close()
	x := f.verify(glued(f, g), replay.Options{}).Difference
	if x == nil || x.Kind != replay.Entries || !strings.Contains(x.What, "backwards") {
		t.Errorf("%+v", x)
	}
}

// One site that has signed something else does not end the audit: it is named, and so are those who agree.
func TestOneLiarDoesNotEndTheAudit(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.silent["site-3"] = true
	f.idle(60)
	for _, p := range f.points {
		p.Hash[0] ^= 1
		f.say("site-3", p)
	}
	for range 15 {
		f.job("site-2")
	}
	f.idle(100)
	f.close()
	r := f.verify(writeFile(t, f.export(0, 0)), replay.Options{})
	if r.Verdict != replay.Differs || r.Difference != nil || len(r.Dissent) != 1 || r.Dissent[0].Site != "site-3" ||
		!strings.Contains(r.Dissent[0].What, "what site-1, site-2 signed") || r.End.Entry != f.replica.Index() {
		t.Errorf("%v; %+v; end %d of %d", r.Difference, r.Dissent, r.End.Entry, f.replica.Index())
	}
}

// A member that came, or replaced its key, behind the end of a file signs what is in it: that is no forgery.
func TestMembersOfLaterOnAreNoForgers(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.silent["site-2"] = true
	f.idle(50)
	to := f.replica.Index()
	f.admit("site-4")
	f.rekey("site-2", "next of site-2")
	for _, p := range f.points {
		f.say("site-4", p)
		f.say("site-2", p)
	}
	f.idle(3)
	f.close()
	part := writeFile(t, f.export(0, to))
	if r := f.verify(part, replay.Options{}); r.Difference != nil || r.Elsewhere != 0 {
		t.Errorf("by itself: %v, %d elsewhere", r.Difference, r.Elsewhere)
	}
	said, err := replay.StatementsOf(t.Context(), f.source(f.dir))
	if err != nil {
		t.Fatal(err)
	}
	r := f.verify(part, replay.Options{Statements: said})
	if r.Difference != nil || r.Elsewhere == 0 || !strings.Contains(strings.Join(r.Notes, " "), "by no key that is known here") {
		t.Errorf("with those from elsewhere: %v, %d elsewhere, %v", r.Difference, r.Elsewhere, r.Notes)
	}
}

// A state at the beginning that nobody has signed, nor anything behind it, is the file's word, too; and of entries from
// the founding on that nobody has signed the order is not proven.
func TestUnsignedBeginningIsNotProven(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.idle(50)
	f.rejoin()
	for _, site := range siteNames {
		f.silent[site] = true
	}
	f.idle(60)
	f.close()
	r := f.verify(f.dir, replay.Options{Keys: realKeys()})
	if entry, _ := r.FilesWord(); r.Verdict != replay.NotProven || entry != r.Begin.Entry || entry == 0 {
		t.Errorf("%s, %v, begin %+v, signed %+v", r.Verdict, r.Difference, r.Begin, r.Signed)
	}
	g := newFederation(t, 64<<20)
	g.idle(3)
	g.close()
	if r = g.verify(g.dir, replay.Options{}); r.Verdict != replay.NotProven || r.Begin.Entry != 0 {
		t.Errorf("of some seconds: %s, %v, begin %+v", r.Verdict, r.Difference, r.Begin)
	}
}

package replay

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/identity"
)

func short(b []byte) string { return hex.EncodeToString(b[:min(8, len(b))]) }

// compare compares what sites have signed of the entry of now with what stands here.
func (v *verifier) compare(begin bool) {
	list := v.said[v.state.Index()]
	if len(list) == 0 {
		return
	}
	delete(v.said, v.state.Index())
	own := recomputed{entry: v.state.Index(), chain: v.chain}
	for i := range list {
		if list[i].Hashed && !own.hashed {
			own.hash, own.hashed = v.state.Hash(), true
		}
	}
	var agree []string
	var against []*Signed
	from := len(v.doubts)
	for i := range list {
		s := &list[i]
		key, known := v.keys.of[s.Site]
		switch {
		case !known || !s.signedBy(v.keys.federation, key):
			v.doubts = append(v.doubts, doubtful{Signed: *s, own: own})
		case own.differs(s, fsm.HashFormat) != "":
			against = append(against, s)
		default:
			v.report.Statements++
			if v.counts(s, begin) {
				agree = append(agree, s.Site)
			}
		}
	}
	slices.Sort(agree)
	agree = slices.Compact(agree)
	for i := range v.doubts[from:] {
		v.doubts[from+i].agree = agree
	}
	for _, s := range against {
		v.contradict(s, &own, agree)
	}
	if len(agree) > 0 && v.report.Difference == nil {
		v.agree(agree, &own, begin)
	}
}

// counts reports whether a statement that agrees backs what stands here: its key is known by more than the file's word,
// and where a state is given it is of that, which the chain says nothing of.
func (v *verifier) counts(s *Signed, begin bool) bool {
	_, strange := v.strange[s.Site]
	return !strange && (v.word == 0 && !begin || s.Hashed && s.Format == fsm.HashFormat)
}

// agree notes who has signed what stands here.
func (v *verifier) agree(sites []string, own *recomputed, begin bool) {
	v.vouch(sites)
	v.agreed = Point{
		Entry: own.entry, LogTimeMs: v.state.Time(), Chain: hex.EncodeToString(own.chain[:]),
		State: hex.EncodeToString(own.hash[:]), SignedBy: sites,
	}
	if len(sites) >= len(v.report.Backed.SignedBy) {
		v.report.Backed = v.agreed
	}
	v.suspect = 0
	if begin {
		v.report.Begin.SignedBy = sites
	}
}

// contradict notes that a site has signed something else. If others have signed what stands here, it is one that
// dissents, and does not end the audit.
func (v *verifier) contradict(s *Signed, own *recomputed, agree []string) {
	d := Difference{Kind: own.differs(s, fsm.HashFormat), Entry: s.Entry, Site: s.Site}
	signed, here := s.Chain[:], own.chain[:]
	if d.Kind == State {
		signed, here = s.Hash[:], own.hash[:]
	}
	d.What = fmt.Sprintf("%s has signed another %s: %s; what stands here leads to %s. %s",
		s.Site, d.Kind, short(signed), short(here), v.since(agree))
	if len(agree) == 0 {
		v.differ(d)
		return
	}
	same := func(o Difference) bool { return o.Site == d.Site }
	if !slices.ContainsFunc(v.report.Dissent, same) {
		v.report.Dissent = append(v.report.Dissent, d)
	}
}

// since says up to where what stands here is known to be what others have signed.
func (v *verifier) since(agree []string) string {
	text := "Nothing before it was signed, also not the state at the beginning"
	if n := len(v.report.Gaps); n > 0 {
		text = fmt.Sprintf("Nothing since the gap was signed, also not the state of entry %d behind it", v.report.Gaps[n-1].To)
	}
	switch {
	case len(agree) > 0:
		return "That is what " + strings.Join(agree, ", ") + " signed"
	case len(v.agreed.SignedBy) > 0:
		text = fmt.Sprintf("Up to entry %d it is what %s signed", v.agreed.Entry, strings.Join(v.agreed.SignedBy, ", "))
	}
	if v.suspect != 0 {
		text += fmt.Sprintf("; since then entry %d is the first with commands that %s, who is named there, has not signed",
			v.suspect, v.suspects)
	}
	return text
}

// settleDoubts looks whether statements are signed by a key that their sites had at another time; gap: entries are
// missing from here on, and so may be the key.
func (v *verifier) settleDoubts(gap bool) {
	for i := range v.doubts {
		d := &v.doubts[i]
		switch {
		case v.ctx.Err() != nil:
			return // Verify says so
		case !d.signedBy(v.keys.federation, v.line[d.Site]...):
			v.notSigned(d, gap)
		case d.own.differs(&d.Signed, fsm.HashFormat) != "":
			v.contradict(&d.Signed, &d.own, d.agree)
		default:
			v.report.Statements++
		}
	}
	v.doubts = nil
}

// notSigned notes a statement that no key of its site signed. Where its site may have a key that is not known here that
// says nothing against anybody.
func (v *verifier) notSigned(d *doubtful, gap bool) {
	if _, strange := v.strange[d.Site]; gap || strange || d.elsewhere || len(v.line[d.Site]) == 0 {
		v.unknown++
		v.report.Elsewhere++
		return
	}
	v.differ(Difference{
		Kind: Statement, Entry: d.Entry, Site: d.Site,
		What: fmt.Sprintf("what %s is said to have signed of it is signed by no key that %s has had here", d.Site, d.Site),
	})
}

// checkKeys compares the members' keys with those that were given.
func (v *verifier) checkKeys() {
	for _, site := range slices.Sorted(maps.Keys(v.Keys)) {
		want, line := v.Keys[site], v.line[site]
		if slices.Contains(line, signature.Key(want)) {
			continue
		}
		what, entry := fmt.Sprintf("%s is no member here, and you have the key %s of it", site, want), v.report.Begin.Entry
		at, strange := v.strange[site]
		switch n := len(line); {
		case n > 0 && strange:
			entry = at
			what = fmt.Sprintf("%s has the key %s here, and you have %s: it came behind a gap, by the file's word; ask %s for its key "+
				"of now", site, identity.Public(line[n-1]), want, site)
		case n > 0:
			what = fmt.Sprintf("%s has the key %s here, and you have %s: this is another federation, or one of them is not its key",
				site, identity.Public(line[n-1]), want)
		}
		v.differ(Difference{Kind: Key, Entry: entry, Site: site, What: what})
	}
}

// noteUnknown says what was not counted.
func (v *verifier) noteUnknown() {
	if v.unknown > 0 {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf(
			"%d statements are signed by no key that is known here: they count as of entries that are not here", v.unknown))
	}
	if n := len(v.strange); n > 0 {
		sites := slices.Sorted(maps.Keys(v.strange))
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("keys that came behind a gap are the file's word, and what they sign "+
			"counts for nothing unless you compare them (--key): those of %d sites, %s", n, strings.Join(sites[:min(n, 8)], " ")))
	}
}

// finish completes the report.
func (v *verifier) finish() *Report {
	r := v.report
	if v.state == nil {
		return r
	}
	v.settleDoubts(false)
	v.checkKeys()
	v.noteUnknown()
	fed := v.state.Federation()
	r.Federation = hex.EncodeToString(fed[:])
	r.Decisions += v.state.Stats().Decisions - v.from
	r.End, r.Signed = v.point(), v.agreed
	if r.Signed.Entry == r.End.Entry {
		r.End.SignedBy = r.Signed.SignedBy
	}
	for _, list := range v.said {
		r.Elsewhere += uint64(len(list))
	}
	v.account(func(a *Account) *Standing { return &a.End })
	p := v.state.Params()
	r.Policy = Policy{p.Policy, p.RateCPU, p.RateMem, p.RateGPU, p.QuantumMs}
	for _, m := range v.state.Roster().Members {
		want, given := v.Keys[m.Site]
		r.Members = append(r.Members, Member{
			Site: m.Site, Key: identity.Public(m.Key), Elector: m.Elector, Banned: m.Banned,
			Checked: given && slices.Contains(v.line[m.Site], signature.Key(want)),
		})
	}
	if len(r.Members) == 0 {
		r.Notes = append(r.Notes, "the federation has no keys: nothing in it is signed, and nothing is proven")
	}
	return r
}

// account notes what the ledger says now of each site.
func (v *verifier) account(of func(*Account) *Standing) {
	places := map[string]int{}
	for i, a := range v.report.Ledger {
		places[a.Site] = i
	}
	for _, a := range v.state.Ledger().Sites {
		i, known := places[a.Site]
		if !known {
			zero := Standing{"0", "0", "0"}
			i = len(v.report.Ledger)
			v.report.Ledger = append(v.report.Ledger, Account{a.Site, zero, zero})
		}
		*of(&v.report.Ledger[i]) = Standing{a.Contribution, a.Utility, a.Priority}
	}
}

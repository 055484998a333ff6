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
	for i := range list {
		s := &list[i]
		key, known := v.keys.of[s.Site]
		switch {
		case !known || !s.signedBy(v.keys.federation, key):
			v.doubts = append(v.doubts, doubtful{*s, own})
		case own.differs(s, fsm.HashFormat) != "":
			v.contradict(s, &own)
		default:
			agree = append(agree, s.Site)
			v.report.Statements++
		}
	}
	if len(agree) > 0 && v.report.Difference == nil {
		v.agree(agree, &own, begin)
	}
}

// agree notes who has signed what stands here.
func (v *verifier) agree(sites []string, own *recomputed, begin bool) {
	slices.Sort(sites)
	sites = slices.Compact(sites)
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

// contradict notes that a site has signed something else.
func (v *verifier) contradict(s *Signed, own *recomputed) {
	d := Difference{Kind: own.differs(s, fsm.HashFormat), Entry: s.Entry, Site: s.Site}
	signed, here := s.Chain[:], own.chain[:]
	if d.Kind == State {
		signed, here = s.Hash[:], own.hash[:]
	}
	d.What = fmt.Sprintf("%s has signed another %s: %s; what stands here leads to %s. %s",
		s.Site, d.Kind, short(signed), short(here), v.since())
	v.differ(d)
}

// since says up to where what stands here is known to be what others have signed.
func (v *verifier) since() string {
	text := "Nothing before it was signed, also not the state at the beginning"
	if len(v.agreed.SignedBy) > 0 {
		text = fmt.Sprintf("Up to entry %d it is what %s signed", v.agreed.Entry, strings.Join(v.agreed.SignedBy, ", "))
	}
	if v.suspect != 0 {
		text += fmt.Sprintf("; since then entry %d is the first with commands that %s, who is named there, has not signed",
			v.suspect, v.suspects)
	}
	return text
}

// settleDoubts looks whether statements are signed by a key that their sites had at another time.
func (v *verifier) settleDoubts() {
	for i := range v.doubts {
		d := &v.doubts[i]
		switch {
		case !d.signedBy(v.keys.federation, v.ever[d.Site]...):
			v.differ(Difference{
				Kind: Statement, Entry: d.Entry, Site: d.Site,
				What: fmt.Sprintf("what %s is said to have signed of it is signed by no key that %s has had here", d.Site, d.Site),
			})
		case d.own.differs(&d.Signed, fsm.HashFormat) != "":
			v.contradict(&d.Signed, &d.own)
		default:
			v.report.Statements++
		}
	}
}

// checkKeys compares the members' keys with those that were given.
func (v *verifier) checkKeys() {
	for _, site := range slices.Sorted(maps.Keys(v.Keys)) {
		want := v.Keys[site]
		if slices.Contains(v.ever[site], signature.Key(want)) {
			continue
		}
		what := fmt.Sprintf("%s is no member here, and you have the key %s of it", site, want)
		if had := v.ever[site]; len(had) > 0 {
			what = fmt.Sprintf("%s has the key %s here, and you have %s: this is another federation, or one of them is not its key",
				site, identity.Public(had[len(had)-1]), want)
		}
		v.differ(Difference{Kind: Key, Entry: v.report.Begin.Entry, Site: site, What: what})
	}
}

// finish completes the report.
func (v *verifier) finish() *Report {
	r := v.report
	if v.state == nil {
		return r
	}
	v.settleDoubts()
	v.checkKeys()
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
			Checked: given && slices.Contains(v.ever[m.Site], signature.Key(want)),
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

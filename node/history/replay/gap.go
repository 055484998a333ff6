package replay

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/replica"
)

// crossGap prepares for a state that stands behind entries that are not here. Whoever made the file may have written
// it: what was signed before says nothing of it, and the keys in it are not known to be the sites'.
func (v *verifier) crossGap(next *fsm.State) {
	v.settleDoubts(true)
	own, its := v.state.Federation(), next.Federation()
	founded := own != [16]byte{}
	if founded && own != its {
		v.differ(Difference{Kind: State, Entry: next.Index(), What: fmt.Sprintf(
			"a state of the federation %x stands behind a gap; up to entry %d it is %x", its, v.state.Index(), own)})
		return
	}
	v.agreed, v.report.Backed, v.suspect = Point{}, Point{}, 0
	if !founded {
		return // its keys are the first ones, as those of a beginning
	}
	v.word = next.Index()
	for site := range v.line {
		if _, member := next.Member(site); !member {
			delete(v.line, site)
		}
	}
}

// noteKey takes the key of a site. One that came by the file's word, in a state behind a gap or in entries behind that
// before a known key has signed it, is not known to follow those before it, unless it was told by another way.
func (v *verifier) noteKey(site string, key signature.Key) {
	line := v.line[site]
	if n := len(line); n > 0 && line[n-1] == key {
		return
	}
	want, given := v.Keys[site]
	switch {
	case given && signature.Key(want) == key:
		delete(v.strange, site)
	case v.word != 0:
		line, v.strange[site] = nil, v.state.Index()
	}
	v.line[site] = append(line, key)
}

// vouch notes that known keys have signed what follows from the state behind the last gap.
func (v *verifier) vouch(sites []string) {
	if n := len(v.report.Gaps); v.word != 0 && n > 0 {
		v.report.Gaps[n-1].SignedBy, v.word = sites, 0
	}
}

// place is where in a history something stands.
type place struct {
	entry uint64
	chain replica.Chain
}

// goBack deals with a state of before the present one. A broker whose segment could not be gone on with begins such a
// one when its log is played again; an exported file has none.
func (v *verifier) goBack(chain replica.Chain, to uint64) {
	if v.t.Header().Whole {
		v.differ(Difference{Kind: Entries, Entry: v.index(), What: fmt.Sprintf(
			"behind it comes a state of entry %d: a history does not go backwards", to)})
		return
	}
	v.passing = &place{to, chain}
	v.report.Notes = append(v.report.Notes, fmt.Sprintf(
		"%s begins with entry %d, before entry %d: what was gone through already is passed over", v.t.Name(), to, v.index()))
}

// pass goes beyond an entry that was gone through before: it must be the same.
func (v *verifier) pass(e *entry) {
	p := v.passing
	if e.number != p.entry+1 {
		v.missing(p.entry, e.number)
		return
	}
	*p = place{e.number, p.chain.Next(e.sum)}
	if p.entry != v.state.Index() {
		return
	}
	if p.chain != v.chain {
		v.differ(Difference{Kind: History, Entry: p.entry, What: fmt.Sprintf(
			"what leads to it stands here twice, and differs: %s, and in %s %s", short(v.chain[:]), v.t.Name(), short(p.chain[:]))})
	}
	v.passing = nil
}

// missing notes that entries are not in a row.
func (v *verifier) missing(before, comes uint64) {
	v.differ(Difference{Kind: Entries, Entry: before + 1, What: fmt.Sprintf(
		"it is missing, or stands elsewhere: behind entry %d comes entry %d", before, comes)})
}

package compare

import (
	"maps"
	"slices"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Hash is of a state.
type Hash = [32]byte

// Verdict is what hashes of one entry say of this member.
type Verdict struct {
	// Known: more than half of all voters have the hash Majority; Agree are those,
	// sorted.
	Known    bool
	Majority Hash
	Agree    []string
	// Wrong: this member's hash is another one than Majority.
	Wrong bool
	// Same and Differ are the other sites with this member's hash, and with another.
	Same, Differ []string
}

// Judge compares this member's hash at one entry with what other sites say of it.
// All voters count, those that said nothing, too: half of them is no majority.
func Judge(self string, own Hash, voters []string, said map[string]Hash) Verdict {
	var v Verdict
	for _, site := range slices.Sorted(maps.Keys(said)) {
		switch {
		case site == self: // nobody else speaks for this member
		case said[site] == own:
			v.Same = append(v.Same, site)
		default:
			v.Differ = append(v.Differ, site)
		}
	}
	agree := map[Hash][]string{}
	for _, site := range slices.Compact(slices.Sorted(slices.Values(voters))) {
		hash, ok := said[site]
		if site == self {
			hash, ok = own, true
		}
		if ok {
			agree[hash] = append(agree[hash], site)
		}
	}
	for hash, sites := range agree {
		if 2*len(sites) > len(voters) { // true of one hash at most
			v.Known, v.Majority, v.Agree, v.Wrong = true, hash, sites, hash != own
		}
	}
	return v
}

// Kind is what is compared of two checkpoints.
type Kind int

// The kinds.
const (
	Histories Kind = iota // the heads of the chains
	States                // the hashes of the states, where both sides have them
	kinds
)

// String returns what differs, for people.
func (k Kind) String() string { return [...]string{"history", "state"}[k] }

// of returns a checkpoint's hash of a kind, if it has one.
func (k Kind) of(c coord.Checkpoint) (Hash, bool) {
	if k == States {
		return c.Hash, c.Hashed
	}
	return c.Chain, true
}

// Finding is what a round of comparisons says of this member.
type Finding struct {
	// Wrong: at Entry, the newest such one, this member's What differs from a majority's.
	Wrong bool
	What  Kind
	Entry uint64
	Own   Hash
	Verdict
	// Newest holds what is newest in common with each site that has anything.
	Newest map[string]Common
	// Backed is, of each kind, the newest entry at which more than half of the voters that
	// are asked have what this member has.
	Backed [kinds]uint64
}

// Pair is what this member and another one have of one entry, zero = nothing.
type Pair struct {
	Entry       uint64
	Own, Theirs Hash
	// Since is the oldest entry in common from which on all differ; 0: they agree.
	Since uint64
}

// Common is the newest that this member and another one have, of each kind.
type Common [kinds]Pair

// Differs returns what differs first.
func (c *Common) Differs() (Kind, Pair, bool) {
	for k, p := range c {
		if p.Since > 0 {
			return Kind(k), p, true
		}
	}
	return 0, Pair{}, false
}

// JudgeAll compares this member's checkpoints with those of other sites.
func JudgeAll(self string, own []coord.Checkpoint, voters []string, said map[string][]coord.Checkpoint) Finding {
	f := Finding{Newest: map[string]Common{}}
	for k := range kinds {
		f.judge(k, self, own, voters, said)
	}
	return f
}

// judge compares one kind.
func (f *Finding) judge(
	k Kind, self string, own []coord.Checkpoint, voters []string, said map[string][]coord.Checkpoint,
) {
	at := byEntry(k, own, said)
	for _, c := range own {
		mine, has := k.of(c)
		if !has {
			continue
		}
		for site, theirs := range at[c.Entry] {
			if site != self && c.Entry > f.Newest[site][k].Entry {
				n := f.Newest[site]
				n[k].observe(c.Entry, mine, theirs)
				f.Newest[site] = n
			}
		}
		v := Judge(self, mine, voters, at[c.Entry])
		if v.Wrong && c.Entry > f.Entry {
			f.Wrong, f.What, f.Entry, f.Own, f.Verdict = true, k, c.Entry, mine, v
		}
		if v.backed(self, voters) {
			f.Backed[k] = max(f.Backed[k], c.Entry)
		}
	}
}

// byEntry returns what was said of each entry that this member has, by site.
func byEntry(k Kind, own []coord.Checkpoint, said map[string][]coord.Checkpoint) map[uint64]map[string]Hash {
	at := make(map[uint64]map[string]Hash, len(own))
	for _, c := range own {
		at[c.Entry] = map[string]Hash{}
	}
	for site, list := range said {
		for _, c := range list {
			if hash, has := k.of(c); has && at[c.Entry] != nil {
				at[c.Entry][site] = hash
			}
		}
	}
	return at
}

// observe takes in a newer entry.
func (p *Pair) observe(entry uint64, own, theirs Hash) {
	p.Entry, p.Own, p.Theirs = entry, own, theirs
	switch {
	case own == theirs:
		p.Since = 0
	case p.Since == 0:
		p.Since = entry
	}
}

// backed reports whether more than half of the voters that are asked agree with this member. Unlike the word of a
// majority of all, which stops a member, that of many may be taken for it: it only lets this one go on.
func (v *Verdict) backed(self string, voters []string) bool {
	n := 0
	for _, site := range voters {
		if site == self || slices.Contains(v.Same, site) {
			n++
		}
	}
	return 2*n > min(len(voters), maxVoters+1)
}

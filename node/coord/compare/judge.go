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

// Finding is what a round of comparisons says of this member.
type Finding struct {
	// Wrong: at Entry, the newest such one, this member differs from a majority.
	Wrong bool
	Entry uint64
	Own   Hash
	Verdict
	// Newest holds the newest entry in common with each site that has any.
	Newest map[string]Common
}

// Common is an entry that this member and another one have hashed.
type Common struct {
	Entry       uint64
	Own, Theirs Hash
}

// Same reports whether the states were the same.
func (c Common) Same() bool { return c.Own == c.Theirs }

// JudgeAll compares this member's checkpoints with those of other sites.
func JudgeAll(self string, own []coord.Checkpoint, voters []string, said map[string][]coord.Checkpoint) Finding {
	f := Finding{Newest: map[string]Common{}}
	at := make(map[uint64]map[string]Hash, len(own))
	for _, c := range own {
		at[c.Entry] = map[string]Hash{}
	}
	for site, list := range said {
		for _, c := range list {
			if hashes := at[c.Entry]; hashes != nil {
				hashes[site] = c.Hash
			}
		}
	}
	for _, c := range own {
		for site, theirs := range at[c.Entry] {
			if site != self && c.Entry >= f.Newest[site].Entry {
				f.Newest[site] = Common{c.Entry, c.Hash, theirs}
			}
		}
		if v := Judge(self, c.Hash, voters, at[c.Entry]); v.Wrong && c.Entry >= f.Entry {
			f.Wrong, f.Entry, f.Own, f.Verdict = true, c.Entry, c.Hash, v
		}
	}
	return f
}

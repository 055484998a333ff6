package raftlog

import (
	"cmp"
	"slices"
	"time"
)

// places are the voters as one of them sees them, for the question of which one should lead. It is a pure function of
// what was measured.
type places struct {
	self   string
	voters []string // self among them
	trips  trips
	// syncs are how long the disks take, where that is known; nil: of none.
	syncs map[string]time.Duration
	// absent are those that cannot lead now.
	absent map[string]bool
}

const (
	// A leader is far if the round trip to its nearest majority is farFactor times that of
	// another voter, and farLeast longer; and that voter has to win farLeast of what an entry takes.
	farFactor = 2
	farLeast  = 10 * time.Millisecond
	// A voter has its turns if its round trip is at most turnTimes/turnOf of the shortest, or turnMore longer: less
	// than what makes a leader far, so that no turn is handed back.
	turnTimes, turnOf = 3, 2
	turnMore          = farLeast / 2
)

// quorum returns how long the others take that complete a quorum with a voter; ok is false if too few are known.
func (p *places) quorum(site string, took func(other string) (time.Duration, bool)) (d time.Duration, ok bool) {
	var all []time.Duration
	for _, other := range p.voters {
		if other == site {
			continue
		}
		if d, ok = took(other); !ok {
			d = unmeasured
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return 0, false
	}
	d = quorumLatency(all)
	return d, d < unmeasured
}

// majority returns the round trip from a voter to the farthest of its nearest majority.
func (p *places) majority(site string) (time.Duration, bool) {
	return p.quorum(site, func(other string) (time.Duration, bool) { return p.trips.between(site, other) })
}

// answers returns how long a voter takes to store another one's entry and say so.
func (p *places) answers(other, leader string) (time.Duration, bool) {
	trip, ok := p.trips.between(leader, other)
	sync, known := p.syncs[other]
	return trip + sync, ok && known
}

// commit returns how long an entry takes if a voter leads: its own sync, then the others'.
func (p *places) commit(site string) (time.Duration, bool) {
	own, known := p.syncs[site]
	others, ok := p.quorum(site, func(other string) (time.Duration, bool) { return p.answers(other, site) })
	return own + others, ok && known
}

// nearer returns the voters whose majority is much nearer than this one's. Round trips alone decide, which load hardly
// changes.
func (p *places) nearer() (out []string) {
	own, known := p.majority(p.self)
	for _, site := range p.voters {
		trip, ok := p.majority(site)
		if site != p.self && ok && known && farFactor*trip <= own && own-trip >= farLeast {
			out = append(out, site)
		}
	}
	return out
}

// better returns those of nearer that should lead instead of this one, the quickest first: they are there, and their
// disks do not cost what the way gains.
func (p *places) better() []string {
	now, known := p.commit(p.self)
	then := map[string]time.Duration{}
	for _, site := range p.nearer() {
		took, ok := p.commit(site)
		if ok && known && now-took >= farLeast && !p.absent[site] && !p.slow(site) {
			then[site] = took
		}
	}
	return ordered(then)
}

// ordered returns the keys by their values, then by name.
func ordered(of map[string]time.Duration) []string {
	var keys []string
	for k := range of {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(of[a], of[b]), cmp.Compare(a, b)) })
	return keys
}

// slow reports whether a voter, if it led, would hand over because its disk is slow.
func (p *places) slow(site string) bool {
	var others []voterDisk
	for _, other := range p.voters {
		if other != site {
			took, ok := p.answers(other, site)
			others = append(others, voterDisk{sync: took, known: ok, ready: ok})
		}
	}
	_, slow := chooseFasterVoter(p.syncs[site], others)
	return slow
}

// hastens reports whether entries would take at most half the time if another voter led; where that is not known, they
// might.
func (p *places) hastens(site string) bool {
	now, known := p.commit(p.self)
	then, too := p.commit(site)
	return !known || !too || 2*then <= now
}

// hasTurns reports whether a voter leads in its turn: its majority is about as near as the nearest. Where nothing is
// known all have their turns.
func (p *places) hasTurns(site string) bool {
	best := unmeasured
	for _, v := range p.voters {
		if d, ok := p.majority(v); ok {
			best = min(best, d)
		}
	}
	d, ok := p.majority(site)
	return best == unmeasured || ok && d <= max(best*turnTimes/turnOf, best+turnMore)
}

package compare

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Member is one of the group, as the backend knows it.
type Member struct {
	Site, Addr string // Addr "" = not known now
	Voter      bool
}

// Config of a Checker; all but Identity, Floor, Dir and Proofs is required.
type Config struct {
	Site  string
	Group Group
	// Identity signs what this member says and knows by what keys others do; nil: nothing is
	// signed, and all are believed.
	Identity Identity
	// Floor returns an entry that was committed after this member began: only what comes
	// behind it is compared. nil: everything is.
	Floor   func(ctx context.Context) (uint64, error)
	Machine coord.Checkpointed
	// Members returns those of the group now, this one too.
	Members func() []Member
	// Dial opens a connection of relay.KindCompare to a member.
	Dial func(ctx context.Context, m Member) (net.Conn, error)
	// Refuse tells people, seldom, of a connection that asks nonsense.
	Refuse func(conn net.Conn, err error)
	// Stop takes this member out of the group for good.
	Stop func(error)
	// Dir is where a member that stops keeps the states, "" = nowhere; Proofs is where one
	// keeps what others have signed, if that differs.
	Dir, Proofs string
	// Keep is told what was signed, by this member and, once that was checked, by others; the same more than once. It
	// must not block, nor keep the list. nil: nobody is.
	Keep func(Group, []Statement)
	// Remedy says how to go on behind a stop, on this backend.
	Remedy string
	// Every is the time between two rounds of a voter among few, Timeout that of one
	// answer.
	Every, Timeout time.Duration
	Log            zerolog.Logger
}

// Bounds of a round.
const (
	// fewVoters compare every Config.Every; others, who would be many, seldom.
	fewVoters = 9
	seldom    = 12
	// maxVoters and maxOthers are how many of each are asked in one round. With more
	// than twice maxVoters of them no majority is ever known.
	maxVoters = 64
	maxOthers = 3
	maxAtOnce = 8
	// glance is how many Every lie between two looks at one other member, taken at random,
	// where rounds are seldom.
	glance = 2
)

// Checker compares this member's state with those of others.
type Checker struct {
	cfg     Config
	serving chan struct{}
	sending sync.Mutex // held while a state is sent

	begun atomic.Bool   // floor is known
	floor atomic.Uint64 // entry behind which this member compares

	mu     sync.Mutex
	found  coord.Comparison // but for Differ
	differ map[string]difference
	// backed is the newest entry of each kind at which most of the voters had what this
	// member has.
	backed [kinds]uint64
	state  uint64               // newest entry of which another member's state was compared
	own    map[uint64]Statement // what this member says now
	// kept is what others have said last, by site and entry; unproven are those whose last
	// answer was not signed by them.
	kept     map[string]map[uint64]Statement
	unproven map[string]bool
	// unwritten is the evidence that the disk has not taken. Invariant: maxProofs files at most.
	unwritten []proof
}

// difference is what differs from a site.
type difference struct {
	Kind
	Pair
}

// New returns a checker that does not ask yet, but answers.
func New(cfg Config) *Checker {
	return &Checker{
		cfg: cfg, serving: make(chan struct{}, maxServed), differ: map[string]difference{},
		kept: map[string]map[uint64]Statement{}, unproven: map[string]bool{},
	}
}

// Compared implements coord.Comparing.
func (c *Checker) Compared() coord.Comparison {
	if c == nil { // the machine has no checkpoints
		return coord.Comparison{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.found
	out.Same, out.Liars = slices.Clone(out.Same), maps.Clone(out.Liars)
	out.Differ = make(map[string]uint64, len(c.differ))
	for site, d := range c.differ {
		out.Differ[site] = d.Entry
	}
	return out
}

// voters returns the sites that vote.
func voters(members []Member) []string {
	var out []string
	for _, m := range members {
		if m.Voter {
			out = append(out, m.Site)
		}
	}
	return out
}

// choose returns whom a round asks: the voters, and a few of the others.
func (c *Checker) choose(members []Member) []Member {
	var vote, other []Member
	for _, m := range members {
		switch {
		case m.Site == c.cfg.Site || m.Addr == "":
		case m.Voter:
			vote = append(vote, m)
		default:
			other = append(other, m)
		}
	}
	for _, list := range [][]Member{vote, other} {
		rand.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	}
	return slices.Concat(vote[:min(len(vote), maxVoters)], other[:min(len(other), maxOthers)])
}

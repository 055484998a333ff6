package compare

import (
	"context"
	"errors"
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
	own    map[uint64]Statement // what this member says now
	// kept is what others have said last, by site and entry; unproven are those whose last
	// answer was not signed by them.
	kept     map[string]map[uint64]Statement
	unproven map[string]bool
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

// Run compares until ctx ends, or until this member has to stop.
func (c *Checker) Run(ctx context.Context) {
	for !c.begin(ctx) {
		if !pause(ctx, c.cfg.Every) {
			return
		}
	}
	for passed := 1; !switchedOff(); passed++ {
		if !pause(ctx, c.cfg.Every+time.Duration(rand.Int64N(int64(c.cfg.Every)/5+1))) { // not all at once
			return
		}
		members := c.cfg.Members()
		full := passed >= c.interval(members) // asked each time: this member may vote by now
		if full {
			passed = 0
		}
		if !full && passed%glance != 0 {
			continue
		}
		if f, wrong := c.look(ctx, full); wrong {
			c.stop(ctx, f)
			return
		}
	}
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// begin learns behind which entry this member compares.
func (c *Checker) begin(ctx context.Context) bool {
	if c.cfg.Floor != nil {
		floor, err := c.cfg.Floor(ctx)
		if err != nil {
			c.cfg.Log.Debug().Err(err).Msg("states are not compared yet")
			return false
		}
		c.floor.Store(floor)
	}
	c.begun.Store(true)
	return true
}

// look asks others, again if they contradict this member: nobody stops, or rests, at one answer. It reports whether
// this member has to stop.
func (c *Checker) look(ctx context.Context, full bool) (Finding, bool) {
	f, unsure, err := c.round(ctx, full)
	if err == nil && (f.Wrong || unsure != "") {
		f, unsure, err = c.round(ctx, true)
	}
	if err != nil {
		if c.unsure() == "" { // who differed has left
			c.setUnsure("")
		}
		return f, false
	}
	c.setUnsure(unsure)
	return f, f.Wrong
}

// interval returns how many Every lie between two rounds.
func (c *Checker) interval(members []Member) int {
	voters := voters(members)
	if len(voters) <= fewVoters && slices.Contains(voters, c.cfg.Site) {
		return 1
	}
	return seldom
}

// Silence is after how long a voter that no other one has asked can take it that none
// reaches it.
func Silence(every time.Duration, voters int) time.Duration {
	if voters > fewVoters {
		return 3 * seldom * every
	}
	return 6 * every
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

var errNothing = errors.New("nothing was compared")

// round asks others once, one of them unless full, and notes what they say. unsure is why this member is to begin
// nothing for others, by that.
func (c *Checker) round(ctx context.Context, full bool) (f Finding, unsure string, err error) {
	members := c.cfg.Members()
	whom := c.choose(members)
	if !full {
		whom = one(whom)
	}
	own := c.points()
	said := c.askMembers(ctx, whom, own)
	if ctx.Err() != nil {
		return Finding{}, "", errNothing
	}
	f = JudgeAll(c.cfg.Site, own, voters(members), c.believed(said))
	fresh := c.recordFinding(members, &f)
	for _, site := range fresh {
		c.keepDifference(members, site, said)
	}
	c.askHeard(ctx, whom)
	if len(f.Newest) == 0 {
		return f, "", errNothing
	}
	return f, c.unsure(), nil
}

// one returns one of the members.
func one(members []Member) []Member {
	if len(members) == 0 {
		return nil
	}
	i := rand.IntN(len(members))
	return members[i : i+1]
}

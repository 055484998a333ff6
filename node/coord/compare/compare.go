package compare

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Member is one of the group, as the backend knows it.
type Member struct {
	Site, Addr string // Addr "" = not known now
	Voter      bool
}

// Config of a Checker; all but Dir is required.
type Config struct {
	Site    string
	Machine coord.Checkpointed
	// Members returns those of the group now, this one too.
	Members func() []Member
	// Dial opens a connection of relay.KindCompare to a member.
	Dial func(ctx context.Context, m Member) (net.Conn, error)
	// Refuse tells people, seldom, of a connection that asks nonsense.
	Refuse func(conn net.Conn, err error)
	// Stop takes this member out of the group for good.
	Stop func(error)
	// Dir is where a member that stops keeps the states, "" = nowhere.
	Dir string
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
)

// Checker compares this member's state with those of others.
type Checker struct {
	cfg     Config
	serving chan struct{}
	sending sync.Mutex // held while a state is sent

	mu    sync.Mutex
	found coord.Comparison
}

// New returns a checker that does not ask yet, but answers.
func New(cfg Config) *Checker {
	return &Checker{cfg: cfg, serving: make(chan struct{}, maxServed)}
}

// Compared implements coord.Comparing.
func (c *Checker) Compared() coord.Comparison {
	if c == nil { // the machine has no checkpoints
		return coord.Comparison{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.found
	out.Same = slices.Clone(out.Same)
	out.Differ = make(map[string]uint64, len(c.found.Differ))
	for site, entry := range c.found.Differ {
		out.Differ[site] = entry
	}
	return out
}

// Run compares until ctx ends, or until this member has to stop.
func (c *Checker) Run(ctx context.Context) {
	for passed := 1; ctx.Err() == nil && !switchedOff(); passed++ {
		select {
		case <-time.After(c.cfg.Every + time.Duration(rand.Int64N(int64(c.cfg.Every)/5+1))): // not all at once
		case <-ctx.Done():
			return
		}
		if passed < c.interval(c.cfg.Members()) { // asked each time: this member may vote by now
			continue
		}
		passed = 0
		f, err := c.round(ctx)
		if err == nil && f.Wrong { // nobody stops at one look
			f, err = c.round(ctx)
		}
		if err == nil && f.Wrong {
			c.stop(ctx, f)
			return
		}
	}
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

// round asks others once, and notes what they say.
func (c *Checker) round(ctx context.Context) (Finding, error) {
	members := c.cfg.Members()
	said := c.askMembers(ctx, c.choose(members))
	if ctx.Err() != nil {
		return Finding{}, errNothing
	}
	f := JudgeAll(c.cfg.Site, c.cfg.Machine.Checkpoints(), voters(members), said)
	c.recordFinding(members, f)
	if len(f.Newest) == 0 {
		return f, errNothing
	}
	return f, nil
}

package compare

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

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
	c.writeAgain()
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

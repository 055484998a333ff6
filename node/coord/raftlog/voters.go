package raftlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// maxVoters bounds the quorum; more voters only slow every entry down.
const maxVoters = 5

// candidate is a non-voter as the leader sees it.
type candidate struct {
	id    raft.ServerID
	since time.Time // healthy without a break; zero = not healthy
}

// promotions says which non-voters become voters now: as many as bring the
// number of voters to the next odd one, all of them stable. Voters are counted
// present or not; demotion makes room for those that stay away.
func promotions(voters int, candidates []candidate, now time.Time, stable time.Duration) []raft.ServerID {
	need := 1 + voters%2 // from an odd number two at once, so that it stays odd
	if voters == 0 || voters+need > maxVoters {
		return nil
	}
	ready := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool {
		return c.since.IsZero() || now.Sub(c.since) < stable
	})
	if len(ready) < need {
		return nil
	}
	slices.SortFunc(ready, longest)
	out := make([]raft.ServerID, need)
	for i := range out {
		out[i] = ready[i].id
	}
	return out
}

// census is the group as the leader sees it at one look.
type census struct {
	now        time.Time
	voters     int
	healthy    int         // voters that answer and keep up, the leader among them
	away       []candidate // voters without contact, since when
	candidates []candidate
	addr       map[raft.ServerID]raft.ServerAddress
}

// demotion says which voter gives its place to a non-voter: the one that is away
// for longest, if some non-voter is stable, all voters that are not away for
// long are healthy, and they are a quorum of what is left. The place is filled
// by promotions afterwards: at no time are more members needed for a quorum
// than before, and a voter that is away counts against nothing any more.
func (c *census) demotion(stable, replace time.Duration) (raft.ServerID, bool) {
	ready := func(x candidate) bool { return !x.since.IsZero() && c.now.Sub(x.since) >= stable }
	gone := slices.DeleteFunc(slices.Clone(c.away), func(x candidate) bool { return c.now.Sub(x.since) < replace })
	if len(gone) == 0 || !slices.ContainsFunc(c.candidates, ready) ||
		c.healthy+len(gone) < c.voters || c.healthy < (c.voters-1)/2+1 {
		return "", false
	}
	return slices.MinFunc(gone, longest).id, true
}

// longest orders by the time since when, then by name.
func longest(a, b candidate) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.id, b.id))
}

// voterTracker is what the leader has seen of its members, from look to look.
type voterTracker struct {
	healthy map[raft.ServerID]time.Time // non-voters, since when without a break
	away    map[raft.ServerID]time.Time // voters without contact, since when
	before  uint64                      // commit index at the last look; 0 = none in this term
}

func newVoterTracker() *voterTracker {
	return &voterTracker{healthy: map[raft.ServerID]time.Time{}, away: map[raft.ServerID]time.Time{}}
}

// voterChoice promotes and demotes members, at the leader. No field changes once raft is open.
type voterChoice struct {
	cfg     *Config
	member  *facade.Member
	t       timing
	log     zerolog.Logger
	raft    *raft.Raft
	trans   *transport.Transport
	dialer  dialer
	promote func(raft.ServerID) error
}

// watch looks at every member and acts at the leader.
func (v *voterChoice) watch(ctx context.Context, e *voterTracker) {
	if !v.member.Calls.Leads() {
		clear(e.healthy)
		clear(e.away)
		e.before = 0
		return
	}
	commit := v.raft.CommitIndex()
	v.adjust(ctx, e)
	e.before = commit
}

// adjust changes the voters if that is due. A member is healthy while it answers
// and has what was committed when the leader looked last, away while it does not
// answer.
//
// Nobody is promoted while a voter is not healthy: raft refuses its vote to a
// voter that it does not know as one yet. If the leader died after a promotion
// that one of two voters had not heard of, the two could not elect a leader. A
// demotion has no such moment: the voters that are left know each other.
func (v *voterChoice) adjust(ctx context.Context, e *voterTracker) {
	c := v.census(e)
	if v.revoke(ctx, &c) {
		return
	}
	v.dropUnwilling(ctx, e, &c)
	if gone, ok := c.demotion(v.t.stable, v.t.replace); ok {
		err := outcome(ctx, v.raft.DemoteVoter(gone, 0, v.t.enqueue))
		v.log.Info().Err(err).Str("site", string(gone)).Msg("a voter that stays away gives its vote to another site")
		return
	}
	if c.healthy < c.voters {
		return
	}
	for _, id := range promotions(c.voters, c.candidates, c.now, v.t.stable) {
		if err := v.promote(id); err != nil {
			v.log.Warn().Err(err).Str("site", string(id)).Msg("promotion to voter failed: will try again")
			return
		}
		v.log.Info().Str("site", string(id)).Msg("promoted to voter")
	}
}

// revoke takes the vote of a site that the members let vote no more, and drops one that they have expelled; one at
// a time. A leader that may not vote does so to all but itself: it hands over (broker's fitness), and the next one
// goes on.
func (v *voterChoice) revoke(ctx context.Context, c *census) bool {
	for _, s := range v.raft.GetConfiguration().Configuration().Servers {
		site, what := string(s.ID), ""
		var f raft.Future
		switch {
		case site == v.cfg.Site:
			continue
		case coord.Expelled(v.cfg.Machine, site):
			f, what = v.raft.RemoveServer(s.ID, 0, v.t.enqueue), "an expelled site leaves the group"
		case s.Suffrage == raft.Voter && !coord.MayVote(v.cfg.Machine, site):
			f, what = v.raft.DemoteVoter(s.ID, 0, v.t.enqueue), "a site that is no elector any more gives up its vote"
		default:
			continue
		}
		v.log.Info().Err(outcome(ctx, f)).Str("site", site).Msg(what)
		return true
	}
	c.candidates = slices.DeleteFunc(c.candidates, func(x candidate) bool {
		return !coord.MayVote(v.cfg.Machine, string(x.id))
	})
	return false
}

// makeVoter promotes a member at the address that the group has now: it may have
// moved since the census.
func (l *Log) makeVoter(id raft.ServerID) error {
	l.moving.Lock()
	defer l.moving.Unlock()
	at := l.configuredPeer(string(id))
	if at.None() {
		return transport.ErrNotMember
	}
	return outcome(l.Ctx, l.raft.AddVoter(id, transport.ServerAddress(at.Site, at.Addr), 0, l.t.enqueue))
}

// census counts the members by what this leader has heard of them.
func (v *voterChoice) census(e *voterTracker) census {
	c := census{now: time.Now(), addr: map[raft.ServerID]raft.ServerAddress{}}
	for _, s := range v.raft.GetConfiguration().Configuration().Servers {
		c.addr[s.ID] = s.Address
		match, at := v.trans.Follower(s.ID)
		heard := v.t.heartbeat
		if s.Suffrage != raft.Voter {
			heard = max(heard, v.t.quiet())
		}
		answers := c.now.Sub(at) <= heard+v.t.promote
		well := e.before != 0 && match >= e.before && answers
		if s.Suffrage != raft.Voter {
			delete(e.away, s.ID)
			c.candidates = append(c.candidates, candidate{s.ID, holdsSince(e.healthy, s.ID, well, c.now)})
			continue
		}
		self := string(s.ID) == v.cfg.Site
		delete(e.healthy, s.ID)
		c.voters++
		if well || self {
			c.healthy++
		}
		if gone := holdsSince(e.away, s.ID, !answers && !self, c.now); !gone.IsZero() {
			c.away = append(c.away, candidate{s.ID, gone})
		}
	}
	return c
}

// holdsSince keeps the moment since when a condition holds without a break.
func holdsSince(at map[raft.ServerID]time.Time, id raft.ServerID, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		delete(at, id)
	case at[id].IsZero():
		at[id] = now
	}
	return at[id]
}

// dropUnwilling drops the candidates that do not want to be voters (Log.Demote).
// They are asked when they are about to be chosen; one that refuses or does not
// answer begins its stable time again, so that it is not asked at every look.
func (v *voterChoice) dropUnwilling(ctx context.Context, e *voterTracker, c *census) {
	for {
		chosen := promotions(c.voters, c.candidates, c.now, v.t.stable)
		if c.healthy < c.voters {
			chosen = promotions(2, c.candidates, c.now, v.t.stable) // one, to fill a place
		}
		asked := len(c.candidates)
		for _, id := range chosen {
			if !v.isWilling(ctx, id, c.addr[id]) {
				e.healthy[id] = c.now
				c.candidates = slices.DeleteFunc(c.candidates, func(x candidate) bool { return x.id == id })
			}
		}
		if len(c.candidates) == asked {
			return
		}
	}
}

// isWilling asks a member whether it wants to be a voter.
func (v *voterChoice) isWilling(ctx context.Context, id raft.ServerID, addr raft.ServerAddress) bool {
	ctx, cancel := context.WithTimeout(ctx, v.t.rpc/2)
	defer cancel()
	a, err := v.dialer.join(ctx, relay.Peer{Site: string(id), Addr: transport.HostPort(addr)}, joinRequest{Who: true})
	return err == nil && a.Site == string(id) && !a.Resting
}

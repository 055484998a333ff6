package raftlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// maxVoters bounds the quorum; more voters only slow every entry down.
const maxVoters = 5

// candidate is a non-voter as the lead sees it.
type candidate struct {
	id    raft.ServerID
	since time.Time // healthy without a break; zero = not healthy
}

// promotions says which non-voters become voters now: as many as bring the
// number of voters to the next odd one, all of them stable. Voters are counted
// present or not: an absent voter is an operator's decision (architecture D7).
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
	slices.SortFunc(ready, func(a, b candidate) int {
		if c := a.since.Compare(b.since); c != 0 {
			return c
		}
		return cmp.Compare(a.id, b.id)
	})
	out := make([]raft.ServerID, need)
	for i := range out {
		out[i] = ready[i].id
	}
	return out
}

// promote runs at every member and acts at the lead.
func (l *Log) promote(ctx context.Context) {
	tick := time.NewTicker(l.t.promote)
	defer tick.Stop()
	since := map[raft.ServerID]time.Time{}
	var before uint64 // commit index at the last look
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !l.seq.leads() {
			clear(since)
			before = 0
			continue
		}
		commit := l.raft.CommitIndex()
		l.look(since, before)
		before = commit
	}
}

// look promotes who is due. A member is healthy while it answers and has what
// was committed when the lead looked last.
//
// Nobody is promoted while a voter is not healthy: raft refuses its vote to a
// voter that it does not know as one yet. If the lead died after a promotion
// that one of two voters had not heard of, the two could not elect a lead.
func (l *Log) look(since map[raft.ServerID]time.Time, before uint64) {
	now := time.Now()
	servers := l.raft.GetConfiguration().Configuration().Servers
	addr := map[raft.ServerID]raft.ServerAddress{}
	var candidates []candidate
	voters := 0
	whole := true
	for _, s := range servers {
		match, at := l.trans.follower(s.ID)
		healthy := before != 0 && match >= before && now.Sub(at) <= l.t.heartbeat+l.t.promote
		if s.Suffrage == raft.Voter {
			voters++
			whole = whole && (healthy || string(s.ID) == l.cfg.Site)
			continue
		}
		switch {
		case !healthy:
			delete(since, s.ID)
		case since[s.ID].IsZero():
			since[s.ID] = now
		}
		addr[s.ID] = s.Address
		candidates = append(candidates, candidate{s.ID, since[s.ID]})
	}
	if !whole {
		return
	}
	for _, id := range promotions(voters, candidates, now, l.t.stable) {
		if err := l.raft.AddVoter(id, addr[id], 0, l.t.enqueue).Error(); err != nil {
			l.log.Warn().Err(err).Str("site", string(id)).Msg("promotion to voter failed: will try again")
			return
		}
		l.log.Info().Str("site", string(id)).Msg("promoted to voter")
	}
}

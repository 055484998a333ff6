package roster

import "github.com/cloudshare/cloudshare/fsm/command"

// gossipKeyMs is the log time after which gossip has another key: 30 days.
const gossipKeyMs = 30 * 24 * 3_600_000

// GossipKey is the key of the gossip between brokers; Generation 0: there is none yet.
type GossipKey struct {
	Generation uint64
	Key        [32]byte
	SinceMs    int64 // log time at which it came
	// Exposed says that somebody who has it was expelled since. Invariant: false while there is none.
	Exposed bool
}

// valid reports whether commands can have led to it, but for its time.
func (g *GossipKey) valid() bool {
	if g.Generation == 0 {
		return *g == GossipKey{}
	}
	return g.Key != [32]byte{}
}

// Gossip returns the key of gossip.
func (r *Roster) Gossip() GossipKey { return r.gossip }

// NextGossip returns the generation of the key that gossip should have now; 0: the present one may stay.
func (r *Roster) NextGossip(nowMs int64) uint64 {
	if r.Founded() && (r.gossip.Generation == 0 || r.gossip.Exposed || nowMs-r.gossip.SinceMs >= gossipKeyMs) {
		return r.gossip.Generation + 1
	}
	return 0
}

// SetGossip puts the next key of gossip in force. The leader makes it; one that comes too late is refused.
func (r *Roster) SetGossip(c *command.GossipKey, at Moment) command.Code {
	switch {
	case c.Generation == r.gossip.Generation && c.Key == r.gossip.Key:
		return command.OK // it was a repeat
	case !r.Founded() || c.Generation != r.gossip.Generation+1:
		return command.OldKey
	}
	r.gossip = GossipKey{Generation: c.Generation, Key: c.Key, SinceMs: at.Ms}
	r.changed = at.Index
	return command.OK
}

// exposeGossip notes that somebody may have the key of gossip who is no member, or no member any more.
func (r *Roster) exposeGossip() { r.gossip.Exposed = r.gossip.Generation > 0 }

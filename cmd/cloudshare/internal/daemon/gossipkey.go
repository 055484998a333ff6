package daemon

import (
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/membership"
	"github.com/cloudshare/cloudshare/node/replica"
)

// gossipMembers is whose gossip is believed: that of members, by the newest roster that this broker knows of. As long
// as it knows none, that is everybody's.
type gossipMembers struct {
	known atomic.Pointer[map[string]bool]
}

// Known implements membership.Config's.
func (m *gossipMembers) Known(site string) bool {
	known := m.known.Load()
	return known == nil || (*known)[site]
}

func (m *gossipMembers) set(members []*roster.Member) {
	known := make(map[string]bool, len(members))
	for _, x := range members {
		if !x.Banned {
			known[x.Site] = true
		}
	}
	m.known.Store(&known)
}

// followRoster has gossip use the newest key by the state, and believe the members.
func followRoster(r *replica.Replica, g *membership.Gossip, m *gossipMembers, log zerolog.Logger) {
	r.OnGossip(func(key roster.GossipKey, members []*roster.Member) {
		m.set(members)
		if key.Generation == 0 {
			return
		}
		if err := g.SetKey(key.Generation, key.Key[:]); err != nil {
			log.Warn().Err(err).Uint64("generation", key.Generation).Msg("gossip: the next key is not in use: restart the broker")
		}
	})
}

// gossipKeyNow returns the key by the state.
func gossipKeyNow(r *replica.Replica) (key roster.GossipKey) {
	r.View(func(s *fsm.State) { key = s.GossipKey() })
	return key
}

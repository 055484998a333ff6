package daemon

import (
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/membership"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/replica"
)

// gossipOf returns whose gossip is believed: that of members which are not banned or denied. As long as nobody is
// known, that is everybody's.
func gossipOf(trust *truststore.Store) func(site string) bool {
	return func(site string) bool {
		key, member := trust.Key(site)
		return member && !trust.Find(key).Banned || len(trust.Roster().Members) == 0
	}
}

// followGossipKey has gossip use the newest key by the state.
func followGossipKey(r *replica.Replica, g *membership.Gossip, log zerolog.Logger) {
	r.OnGossip(func(key roster.GossipKey) {
		if key.Generation == 0 {
			return
		}
		if err := g.SetKey(key.Generation, key.Key[:]); err != nil {
			log.Warn().Err(err).Uint64("generation", key.Generation).
				Msg("gossip: the next key is not in use: restart the broker")
		}
	})
}

// gossipKeyNow returns the key by the state.
func gossipKeyNow(r *replica.Replica) (key roster.GossipKey) {
	r.View(func(s *fsm.State) { key = s.GossipKey() })
	return key
}

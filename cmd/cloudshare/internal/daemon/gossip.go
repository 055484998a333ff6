package daemon

import (
	"fmt"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/membership"
	"github.com/cloudshare/cloudshare/node/broker"
	"github.com/cloudshare/cloudshare/node/broker/leases"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/replica"
)

// hints gives the broker what gossip sees.
type hints struct {
	gossip  *membership.Gossip
	changed chan struct{} // capacity 1
}

var _ broker.Hints = (*hints)(nil)

// openGossip starts gossip among the members of one lineage, and joins through the
// sites that the state knows, and through those that the configuration names. It
// tells the others where this broker's peer port is.
func openGossip(
	cfg config.Config, group orderedLog, replica *replica.Replica, trust *truststore.Store, log zerolog.Logger,
) (*hints, error) {
	seeds := &gossipSeeds{path: filepath.Join(cfg.DataDir, "gossip.json"), lineage: group.Lineage(), log: log}
	mc := membership.Config{
		Site: cfg.Site, Federation: group.Lineage(), Listen: cfg.Gossip, Advertise: cfg.Advertised(cfg.Gossip),
		Logger: log,
		Join: func() []string {
			return append(seeds.addresses(gossipAddresses(replica, cfg.Site), gossipKeyNow(replica)), cfg.GossipJoin...)
		},
		Meta:      membership.Meta{Peer: group.Addr()},
		Known:     gossipOf(trust),
		Misdialed: relay.Misdialed("the gossip port of site " + cfg.Site),
	}
	if key := seeds.key(gossipKeyNow(replica)); key.Generation > 0 {
		mc.Key, mc.Generation = key.Key[:], key.Generation
	}
	if cfg.IsWAN() {
		mc.Profile = membership.WAN
	}
	g, err := membership.Open(mc)
	if err != nil {
		return nil, fmt.Errorf("open gossip: %w", err)
	}
	followGossipKey(replica, g, log)
	h := &hints{gossip: g, changed: make(chan struct{}, 1)}
	go h.forwardChanges()
	return h, nil
}

// address returns what others are told. A name that is not found yet is told as it is:
// they look it up when they want to join through this site.
func (h *hints) address(cfg config.Config) string {
	if a := h.gossip.Addr(); a.IsValid() {
		return a.String()
	}
	return cfg.Advertised(cfg.Gossip)
}

// forwardChanges ends when gossip is closed.
func (h *hints) forwardChanges() {
	for range h.gossip.Events() {
		select {
		case h.changed <- struct{}{}:
		default:
		}
	}
}

// Word implements broker.Hints.
func (h *hints) Word(site string) leases.Word {
	m, known := h.gossip.Member(site)
	switch {
	case known && m.State == membership.Dead:
		return leases.Missed
	case known && m.State == membership.Left:
		return leases.Parted
	}
	return leases.Nothing
}

// Changed implements broker.Hints.
func (h *hints) Changed() <-chan struct{} { return h.changed }

// gossipAddresses returns those of the other sites that registered.
func gossipAddresses(replica *replica.Replica, self string) (list []string) {
	replica.View(func(s *fsm.State) {
		for _, v := range s.Sites() {
			if v.ID != self && v.Gossip != "" {
				list = append(list, v.Gossip)
			}
		}
	})
	return list
}

package daemon

import (
	"sync/atomic"

	"github.com/cloudshare/cloudshare/membership"
)

// whereabouts are the peer addresses that gossip tells, once there is gossip: the
// log, which wants to know them, is opened before.
type whereabouts struct {
	gossip atomic.Pointer[membership.Gossip]
}

// peers returns where a site may be. Whoever answers there is asked who it is.
func (w *whereabouts) peers(site string) []string {
	g := w.gossip.Load()
	if g == nil {
		return nil
	}
	if m, ok := g.Member(site); ok && m.Peer != "" && (m.State == membership.Alive || m.State == membership.Suspect) {
		return []string{m.Peer}
	}
	return nil
}

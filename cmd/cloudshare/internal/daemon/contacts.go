package daemon

import (
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/contact"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/broker"
)

// watchContacts runs the checks until stop.
func (p *brokerParts) watchContacts(c *contact.Checker) {
	p.endContacts = background(c.Run)
}

// newContactConfig has those checked: the sites that the state does not know as lost. One that has
// ended is among them for a lease, its margin, and the leader's verdict; one whose
// gossip is not heard, perhaps for the same reason, stays among them.
func newContactConfig(c config.Config, ordered orderedLog, b *broker.Broker, log zerolog.Logger) contact.Config {
	t := c.Timing()
	return contact.Config{
		Site: c.Site, Federation: uuid.UUID(ordered.Federation()).String(), Logger: log, Dial: ordered.DialHTTP,
		Patience: t.Lease + t.Margin + 2*time.Second,
		Sites: func() (list []contact.Site) {
			for _, s := range b.Sites() {
				if s.State != fsm.SiteGone && s.State != fsm.Left {
					list = append(list, contact.Site{ID: s.ID, Peer: s.Peer, Incarnation: s.Incarnation})
				}
			}
			return list
		},
	}
}

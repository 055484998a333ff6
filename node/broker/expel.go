package broker

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node"
)

// canExpel refuses to expel who leads while those that vote on the log are no quorum without it: nobody talks to an
// expelled site, so they could order nothing any more, its expulsion from their group neither. Members vote on the log
// once they have caught up, so that passes by itself where three of them are here.
func (b *Broker) canExpel(site string) error {
	s := b.cfg.Log.Status()
	if !expelStrands(s.Lead, s.Voters, site) {
		return nil
	}
	return fmt.Errorf("expel %s: it leads, and without it the other %d of %d sites that vote on the log are no quorum: "+
		"try again once three vote (cloudshare status): %w",
		site, len(s.Voters)-1, len(s.Voters), node.ErrNotReady)
}

// expelStrands reports whether voters have no quorum when site, one of them, leads and is expelled. Another one that
// leads removes the site from the group by itself.
func expelStrands(lead string, voters []string, site string) bool {
	return lead == site && slices.Contains(voters, site) && len(voters)-1 < len(voters)/2+1
}

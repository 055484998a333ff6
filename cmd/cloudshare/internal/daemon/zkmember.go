package daemon

import (
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/zk"
)

// zkMember is the configuration of a member on ZooKeeper.
type zkMember struct{ zk.Config }

// comesFrom lets a site whose data are on Raft go on in the tree that its
// federation has moved to, and in no other.
func (c *zkMember) comesFrom(dir string) error {
	r, z, err := config.DataStates(dir)
	if err != nil || r.Backend == "" || z.Backend != "" && z.Epoch > r.Epoch {
		return err
	}
	c.MinEpoch = r.Epoch + 1
	if z.Backend == "" {
		c.Join, c.Federation = true, r.Federation
	}
	return nil
}

//go:build mutate

package node

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// mutations are the safeguards that this process works without.
var mutations = strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ",")

func init() { fsm.Mutate(mutations) }

// mutated reports whether a safeguard is switched off.
func mutated(safeguard string) bool { return slices.Contains(mutations, safeguard) }

// syncLater writes the journal long after the effects: what a missing sync is
// to a machine that crashes, this is to a process that is killed.
func (b *Broker) syncLater(group []*effects) {
	time.AfterFunc(5*time.Second, func() {
		for _, fx := range group {
			_ = b.cfg.Journal.commit(fx.writes)
		}
	})
}

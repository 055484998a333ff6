//go:build mutate

package replica

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// forkAt is the first entry behind which a forked replica differs from all others.
var forkAt atomic.Uint64

// forks is 1 once this process was found to be the one to fork, 2 once it has.
var forks atomic.Int32

// ForkSite has the replica of this process fork if the mutation fork-replica:SITE
// names its site, behind the entry that @ENTRY names there, or the fortieth.
func ForkSite(site string) {
	for _, m := range mutate.All() {
		who, at, _ := strings.Cut(m, "@")
		if who != "fork-replica:"+site {
			continue
		}
		entry, err := strconv.ParseUint(at, 10, 64)
		if err != nil {
			entry = 40
		}
		forkAt.Store(entry)
		forks.CompareAndSwap(0, 1)
	}
}

// forkIfTold makes the state another one, once. REQUIRES: r.mu held.
func (r *Replica) forkIfTold() {
	if forks.Load() == 1 && r.state.Index() >= forkAt.Load() && forks.CompareAndSwap(1, 2) {
		r.state.Fork()
	}
}

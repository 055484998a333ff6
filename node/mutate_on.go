//go:build mutate

package node

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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

// forkAt is the first entry behind which a forked replica differs from all others.
var forkAt atomic.Uint64

// forks is 1 once this process was found to be the one to fork, 2 once it has.
var forks atomic.Int32

// forkSite has the replica of this process fork if the mutation fork-replica:SITE
// names its site, behind the entry that @ENTRY names there, or the fortieth.
func forkSite(site string) {
	for _, m := range mutations {
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

// stepAfter is how long a process runs before its wall clock is stepped.
const stepAfter = 2 * time.Second

// wallStep is how far this process finds the machine's wall clock stepped once it has
// run for stepAfter: the mutation wall-step@DURATION.
var wallStep = func() (d time.Duration) {
	for _, m := range mutations {
		if text, found := strings.CutPrefix(m, "wall-step@"); found {
			d, _ = time.ParseDuration(text)
		}
	}
	return d
}()

// wallClock is the machine's, stepped.
func wallClock() time.Time {
	if time.Since(processBegan) < stepAfter {
		return time.Now()
	}
	return time.Now().Add(wallStep)
}

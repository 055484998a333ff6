//go:build mutate

package broker

import (
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// syncLater writes the journal long after the effects: what a missing sync is
// to a machine that crashes, this is to a process that is killed.
func (k *committer) syncLater(group []*core.Effects) {
	time.AfterFunc(5*time.Second, func() {
		for _, fx := range group {
			_ = k.journal.Commit(fx.Writes)
		}
	})
}

// stepAfter is how long a process runs before its wall clock is stepped.
const stepAfter = 2 * time.Second

// wallStep is how far this process finds the machine's wall clock stepped once it has
// run for stepAfter: the mutation wall-step@DURATION.
var wallStep = func() (d time.Duration) {
	for _, m := range mutate.All() {
		if text, found := strings.CutPrefix(m, "wall-step@"); found {
			d, _ = time.ParseDuration(text)
		}
	}
	return d
}()

// wallClock returns the machine's, stepped.
func wallClock() time.Time {
	if time.Since(processBegan) < stepAfter {
		return time.Now()
	}
	return time.Now().Add(wallStep)
}

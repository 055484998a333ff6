//go:build mutate

package broker

import (
	"os"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
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

// wallStep is how far this process finds the machine's wall clock stepped once there is the file stepped: the mutation
// wall-step@DURATION@FILE.
var wallStep, stepped = func() (d time.Duration, file string) {
	for _, m := range mutate.All() {
		if text, found := strings.CutPrefix(m, "wall-step@"); found {
			text, file, _ = strings.Cut(text, "@")
			d, _ = time.ParseDuration(text)
		}
	}
	return d, file
}()

// wallClock returns the machine's, stepped.
func wallClock() time.Time {
	if _, err := os.Stat(stepped); err != nil {
		return time.Now()
	}
	return time.Now().Add(wallStep)
}

// wronged are those whose loss judgeWrongly has declared; only the leader's watch uses it.
var wronged = map[coord.Renewal]bool{}

// judgeWrongly has a hostile leader declare sites lost that have leases, each incarnation once.
func judgeWrongly(self string, sites []fsm.SiteView, v *core.Verdicts) {
	victim, on := mutate.Hostile(self, "leader-loses")
	if !on || v.Term == 0 {
		return
	}
	for i := range sites {
		r := coord.Renewal{Site: sites[i].ID, Incarnation: sites[i].Incarnation}
		if r.Site == self || victim != "" && victim != r.Site || sites[i].State != fsm.Alive || wronged[r] {
			continue
		}
		wronged[r] = true
		v.Lost = append(v.Lost, r)
		mutate.Did("leader-loses")
	}
}

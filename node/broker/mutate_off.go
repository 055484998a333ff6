//go:build !mutate

package broker

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/core"
)

// syncLater is never called in this build.
func (k *committer) syncLater([]*core.Effects) {}

// wallClock returns the machine's.
func wallClock() time.Time { return time.Now() }

// judgeWrongly is a hook of test/attacks: there the leader is hostile.
func judgeWrongly(string, []fsm.SiteView, *core.Verdicts) {}

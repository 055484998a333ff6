//go:build mutate

package raftlog

import (
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// mutations are the safeguards that this process works without.
var mutations = strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ",")

var (
	// noDialBack: this process, when it leads, proposes any address that it is told.
	noDialBack = slices.Contains(mutations, "no-dial-back")
	// noSlowDiskHandover: it keeps the leadership, however slow its disk is.
	noSlowDiskHandover = slices.Contains(mutations, "no-slow-disk-handover")
	// noFarHandover: it keeps the leadership, however far it is from a majority.
	noFarHandover = slices.Contains(mutations, "no-far-handover")
	// noClaimedAddress: when it leads, it takes a member's address from others than the member.
	noClaimedAddress = slices.Contains(mutations, "no-claimed-address")
)

// forgetIfHostile has a hostile leader keep no entries that stand in a snapshot, so that who joins is sent that.
func (l *Log) forgetIfHostile() {
	if _, on := mutate.Hostile(l.cfg.Site, "leader-forgets"); !on || l.raft.State() != raft.Leader {
		return
	}
	err := l.reloadRaft(func(rc *raft.ReloadableConfig) (changed bool) {
		rc.TrailingLogs = 1
		return true
	})
	if err == nil && l.raft.Snapshot().Error() == nil {
		mutate.Did("leader-forgets")
	}
}

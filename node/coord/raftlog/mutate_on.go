//go:build mutate

package raftlog

import (
	"os"
	"slices"
	"strings"
)

// mutations are the safeguards that this process works without.
var mutations = strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ",")

var (
	// noDialBack: this process, when it leads, proposes any address that it is told.
	noDialBack = slices.Contains(mutations, "no-dial-back")
	// noSlowDiskHandover: it keeps the leadership, however slow its disk is.
	noSlowDiskHandover = slices.Contains(mutations, "no-slow-disk-handover")
	// noClaimedAddress: when it leads, it takes a member's address from others than the member.
	noClaimedAddress = slices.Contains(mutations, "no-claimed-address")
)

//go:build !mutate

package raftlog

// Hooks of the mutation checks in test/chaos; see mutate_on.go. This is the
// build that users get.
const (
	noDialBack         = false
	noSlowDiskHandover = false
	noFarHandover      = false
	noClaimedAddress   = false
)

// forgetIfHostile is a hook of test/attacks, see mutate_on.go.
func (l *Log) forgetIfHostile() {}

//go:build !mutate

package node

import "time"

// mutated is a hook of the mutation checks in test/chaos: a build with the tag
// "mutate" can switch one safeguard off, to show that a check notices. This is
// the build that users get.
func mutated(string) bool { return false }

// syncLater is never called in this build.
func (b *Broker) syncLater([]*effects) {}

// forkIfTold does nothing in this build.
func (r *Replica) forkIfTold() {}

// forkSite does nothing in this build.
func forkSite(string) {}

// wallClock is the machine's.
func wallClock() time.Time { return time.Now() }

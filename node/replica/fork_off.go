//go:build !mutate

package replica

// forkIfTold does nothing in this build.
func (r *Replica) forkIfTold() {}

// ForkSite does nothing in this build.
func ForkSite(string) {}

//go:build !mutate

package relay

// mutated is a hook of the mutation checks in test/chaos, see package node/internal/mutate. This is
// the build that users get.
func mutated(string) bool { return false }

// playHostile is a hook of test/attacks: there the leader is hostile.
func playHostile(*sequencer, *entryWriter, *entryCalls, *int64) {}

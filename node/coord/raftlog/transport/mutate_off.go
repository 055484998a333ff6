//go:build !mutate

package transport

// Hooks of the mutation checks in test/chaos; see mutate_on.go. This is the
// build that users get.
const (
	noTermBound       = false
	noRequestIdentity = false
	noLeaderSilence   = false
)

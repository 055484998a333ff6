//go:build !mutate

package compare

// switchedOff is a hook of the mutation checks in test/chaos; see mutate_on.go.
// This is the build that users get.
func switchedOff() bool { return false }

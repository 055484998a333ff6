//go:build !mutate

package fsm

// Hooks of the mutation checks in test/chaos; see mutate_on.go. This is the build that users get.
const (
	noTokenCheck    = false
	noCommandWindow = false
	noAuthorship    = false
)

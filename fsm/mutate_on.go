//go:build mutate

package fsm

// Safeguards that a build with the tag "mutate" can work without, to show that
// a check of test/chaos notices.
var noTokenCheck, noCommandWindow bool

// Mutate switches safeguards off, for the whole process.
func Mutate(safeguards []string) {
	for _, s := range safeguards {
		noTokenCheck = noTokenCheck || s == "no-token-check"
		noCommandWindow = noCommandWindow || s == "no-command-window"
	}
}

// Fork makes the state another one than the entries say: a replica that has gone
// wrong.
func (s *State) Fork() { s.seed ^= 1 }

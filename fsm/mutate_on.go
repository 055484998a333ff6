//go:build mutate

package fsm

// noTokenCheck and noCommandWindow switch safeguards off in a build with the tag "mutate", to show that a check
// of test/chaos notices.
var noTokenCheck, noCommandWindow bool

// Mutate switches safeguards off for the whole process.
func Mutate(safeguards []string) {
	for _, s := range safeguards {
		noTokenCheck = noTokenCheck || s == "no-token-check"
		noCommandWindow = noCommandWindow || s == "no-command-window"
	}
}

// Fork makes the state differ from what the entries say, as in a faulty replica.
func (s *State) Fork() { s.seed ^= 1 }

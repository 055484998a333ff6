//go:build mutate

package fsm

// noTokenCheck, noCommandWindow and noAuthorship switch safeguards off in a build with the tag "mutate", to show that a
// check of test/chaos notices.
var noTokenCheck, noCommandWindow, noAuthorship bool

// Mutate switches safeguards off for the whole process.
func Mutate(safeguards []string) {
	for _, s := range safeguards {
		noTokenCheck = noTokenCheck || s == "no-token-check"
		noCommandWindow = noCommandWindow || s == "no-command-window"
		noAuthorship = noAuthorship || s == "no-authorship"
	}
}

// Fork makes the state differ from what the entries say, as in a faulty replica.
func (s *State) Fork() { s.seed ^= 1 }

// InventRuns has all other sites owe one for an hour of a core that it never gave them, as a leader might wish.
func (s *State) InventRuns(executor string) {
	const hourMs = 3_600_000
	x := s.byName[executor]
	for _, owner := range s.sites {
		if owner != x {
			s.charge(owner, x, 1000, 0, s.quanta(hourMs), 0)
		}
	}
}

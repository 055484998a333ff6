package cli

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Outcome says what became of a motion: that it passed, or who must still approve it, and how.
func Outcome(m wire.Motion) string {
	name := fmt.Sprintf("motion %d (%s)", m.Number, About(m))
	switch m.State {
	case "open":
		return fmt.Sprintf("%s needs %s more: %s must run `cloudshare approve %d`", name, Plural(int64(m.Needs), "vote"),
			Waiting(m.Missing, m.Needs), m.Number)
	case "passed":
		return name + " has passed"
	case "void":
		return name + " has passed, but could not be done any more"
	case "expired":
		return name + " has expired: propose it again"
	}
	return name + " is " + m.State
}

// Waiting names those of whom so many must still agree.
func Waiting(missing []string, needs int) string {
	switch {
	case len(missing) == 0:
		return "an elector that is away"
	case len(missing) <= needs:
		return strings.Join(missing, " and ")
	case needs == 1:
		return "one of " + strings.Join(missing, ", ")
	}
	return fmt.Sprintf("%d of %s", needs, strings.Join(missing, ", "))
}

// About says in a few words what a motion would do.
func About(m wire.Motion) string {
	switch m.What {
	case "policy":
		return "change the policy"
	case "elector":
		return "give " + m.Site + " a vote"
	case "no-elector":
		return "take the vote of " + m.Site
	case "rebind":
		return "give the name " + m.Site + " to another key"
	}
	return m.What + " " + m.Site
}

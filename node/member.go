package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Member is a site of the roster as people see it.
type Member struct {
	Site string
	Key  string // as identity.Public is written: csk_…
	Node string // the key's hash, in hex
	// Recovery is the public half of the key that replaces Key when that is lost, "" = none was set.
	Recovery string
	// Generation is how often Key or Recovery were replaced.
	Generation uint64
	Elector    bool // it has a vote
	Deciding   bool // and it counts now: the site was seen in this epoch
	Banned     bool
	Since      time.Time // of its admission; the zero time if not known
}

// Invitation is what became of an invitation, as people see it.
type Invitation struct {
	Site    string // who is invited
	By      string
	Elector bool
	State   string // open, claimed, admitted, revoked, refused or expired
	Until   time.Time
	Key     string // public half of the key in the text
	// Claimant is the key that has used it, "" = nobody has.
	Claimant string
	Motion   uint64   // what the electors decide on
	Waiting  []string // electors that have not voted, while that is open
	Needs    int      // votes for it that are missing then
}

// Motion is what the electors decide on, as people see it.
type Motion struct {
	Number uint64
	Kind   string
	Site   string // whom it is about, "" = of a policy
	Key    string // of a rebinding; of an admission the claimant's, "" = nobody has used the invitation yet
	// Params are what a policy would be, nil of any other kind.
	Params *command.Params
	By     string
	State  string // open, passed, rejected, withdrawn, void or expired
	Opened time.Time
	Until  time.Time // nobody votes afterwards
	Ended  time.Time // the zero time while it is open
	Votes  []Vote    // in the order in which they were first cast
	// Yes, No and Electors count the electors of now; Missing are those that have not voted, while it is open.
	Yes, No, Electors int
	Missing           []string
}

// Vote is one elector's.
type Vote struct {
	Site string
	Yes  bool
}

// Expired is the state of what is open in the roster, and whose time is over.
const Expired = "expired"

// Needs returns how many votes for an open motion are missing.
func (m *Motion) Needs() int { return max(0, m.Electors/2+1-m.Yes) }

// About says in a few words what the motion would do.
func (m *Motion) About() string {
	switch m.Kind {
	case command.MotionPolicy.String():
		return "change the policy"
	case command.MotionElector.String():
		return "give " + m.Site + " a vote"
	case command.MotionNoElector.String():
		return "take the vote of " + m.Site
	}
	return m.Kind + " " + m.Site
}

// Invited is a new invitation, and the text to hand on.
type Invited struct {
	Invitation

	Token     string   // a secret: whoever has it may join in the site's name
	Addresses []string // that the text names
}

// RosterError says why the roster refused something. Each code is a problem of its own in the API.
type RosterError struct {
	Doing string // "invite lab-2"
	Code  command.Code
	Why   string // with what to do; "" = what the code says
}

// Error implements error.
func (e *RosterError) Error() string {
	why := e.Why
	if why == "" {
		why = e.Code.String()
	}
	return fmt.Sprintf("%s: %s", e.Doing, why)
}

// MotionChoiceError says that several open motions are about one site.
type MotionChoiceError struct {
	Site    string
	Motions []Motion
}

// Error names them, with what to do.
func (e *MotionChoiceError) Error() string {
	var list []string
	for i := range e.Motions {
		list = append(list, fmt.Sprintf("%d (%s, by %s)", e.Motions[i].Number, e.Motions[i].About(), e.Motions[i].By))
	}
	return fmt.Sprintf("several open motions are about %s: %s: give the number of one", e.Site, strings.Join(list, ", "))
}

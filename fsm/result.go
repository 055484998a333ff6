package fsm

// Code is the outcome of a command, or of one job of a Submit.
type Code uint8

// The codes. OK is the only success.
const (
	OK             Code = iota
	Stale               // below the floor: whether it was executed is not known any more
	WindowFull          // its number is more than Window above what it acknowledges
	OldIncarnation      // a newer broker of the site has registered
	UnknownSite         // the site never registered
	NameTaken           // the name belongs to another data directory
	UnknownJob          // no such job here
	NotOwner            // only the owner may do that
	AlreadyEnded        // the job or task has ended
	JobExists           // that job number is known: the submission is a repeat
	JobRetired          // that job number was used or settled before
	TooManyShapes       // the site's open jobs have too many different requirements
	TooManyJobs         // the site has as many open jobs as it may
	OutOfRange          // a number exceeds its bound
	BadParams           // the parameters are not valid
	OldTerm             // a SiteLost of a former leader
	OldOffer            // a newer offer stands
	OutOfOrder          // a usage batch that is not the next one
	AlreadyFounded      // a second Genesis
	NotFounded          // a command before Genesis
	VersionTooNew       // an apply version some member does not know
	OlderData           // the data directory does not remember the site\'s latest registration
	PolicySites         // more sites than the policy is for
	TooManyTasks        // the site's open jobs have as many tasks as they may
	TooManyBytes        // the specs of the site's open jobs are as large as they may be
	TooManyNumbers      // the site's job numbers have too many gaps
)

// lastCode is the greatest one.
const lastCode = TooManyNumbers

// Result answers a command; it is what a repeat of the command gives again.
type Result struct {
	Code  Code
	Index uint64 // entry number that executed it
	// Jobs holds a Submit's code per job; nil when all are OK.
	Jobs []Code
	// Incarnation, NextJob and NextUsage answer a Register.
	Incarnation, NextJob, NextUsage uint64
}

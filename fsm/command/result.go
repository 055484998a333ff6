package command

import "slices"

// Result answers a command; a repeat of the command returns it again.
type Result struct {
	Code  Code
	Index uint64 // number of the entry that executed it
	// Jobs holds a Submit's code per job; nil when all are OK.
	Jobs []Code
	// Incarnation, NextJob and NextUsage are the answer to a Register.
	Incarnation, NextJob, NextUsage uint64
}

// Clone returns a copy that shares nothing with r.
func (r Result) Clone() Result {
	r.Jobs = slices.Clone(r.Jobs)
	return r
}

// Code is the outcome of a command, or of one job of a Submit.
type Code uint8

// The codes. OK is the only success.
const (
	OK             Code = iota
	Stale               // below the floor: it is no longer known whether it was executed
	WindowFull          // its number is more than Window above its Ack
	OldIncarnation      // a newer broker of the site has registered
	UnknownSite         // the site never registered
	NameTaken           // the name belongs to another data directory
	UnknownJob          // there is no such job
	NotOwner            // only the owner may do this
	AlreadyEnded        // the job or task has ended
	JobExists           // that job number is known: the submission is a repeat
	JobRetired          // that job number was used or settled before
	TooManyShapes       // the site's open jobs have too many different requirements
	TooManyJobs         // the site has as many open jobs as it may
	OutOfRange          // a number exceeds its bound
	BadParams           // the parameters are not valid
	OldTerm             // a SiteLost by a former leader
	OldOffer            // a newer offer is in force
	OutOfOrder          // a usage batch that is not the next one
	AlreadyFounded      // a second Genesis
	NotFounded          // a command before Genesis
	VersionTooNew       // an apply version that some member does not know
	OlderData           // the data directory does not know the site's latest registration
	PolicySites         // more sites than the policy allows
	TooManyTasks        // the site's open jobs have as many tasks as they may
	TooManyBytes        // the specs of the site's open jobs are as large as they may be
	TooManyNumbers      // the site's job numbers have too many gaps
)

// LastCode is the greatest code.
const LastCode = TooManyNumbers

// codeTexts say what each code means, as the end of a sentence.
var codeTexts = [...]string{
	OK:             "done",
	Stale:          "the command is older than the window: whether it was executed is not known",
	WindowFull:     "too many commands of the site are under way",
	OldIncarnation: "a newer broker of the site has registered",
	UnknownSite:    "the site has not registered",
	NameTaken:      "the site's name belongs to another data directory: use that directory, or choose another name",
	UnknownJob:     "no such job",
	NotOwner:       "only the owner's site may do that",
	AlreadyEnded:   "it has already ended",
	JobExists:      "the job is known already",
	JobRetired:     "the job number was used before",
	TooManyShapes: "open jobs of the site have as many different requirements (size, image, sites, selectors) " +
		"as they may: use fewer, or wait until some end",
	TooManyJobs:    "the site has as many open jobs as it may: wait until some end, cancel some, or submit arrays",
	OutOfRange:     "a number is out of its range",
	BadParams:      "the parameters are not valid",
	OldTerm:        "the leader that found this is no longer the leader",
	OldOffer:       "a newer offer stands",
	OutOfOrder:     "the usage batch is not the next one",
	AlreadyFounded: "the federation has been founded",
	NotFounded:     "the federation has not been founded",
	VersionTooNew:  "a member's broker does not know that apply version: upgrade it",
	OlderData: "the data directory is older than what the federation has seen of this site (was a backup put back?): " +
		"start it with its newest data, or join with an empty directory under another name",
	PolicySites:  "the federation has more sites than that policy is for (SHAPLEY 12, CE 256): choose CE or ALONE",
	TooManyTasks: "the site's open jobs have as many tasks as they may: wait until some end, or cancel some",
	TooManyBytes: "the specs of the site's open jobs take as many bytes as they may: " +
		"wait until some end, cancel some, or submit arrays",
	TooManyNumbers: "the site's job numbers have too many gaps: " +
		"wait until its oldest jobs that are on their way are taken",
}

// String returns what the code means, in words that can end an error's text.
func (c Code) String() string {
	if int(c) < len(codeTexts) {
		return codeTexts[c]
	}
	return "unknown code"
}

// Names of the quotas, in the order in which they are shown.
const (
	QuotaTasks     = "tasks"
	QuotaJobs      = "jobs"
	QuotaBytes     = "bytes"
	QuotaShapes    = "requirements"
	QuotaNumbers   = "numbers"
	QuotaKept      = "kept_jobs"
	QuotaKeptBytes = "kept_bytes"
	QuotaRecords   = "records"
)

// quotaOf names the quota because of which a code refuses.
var quotaOf = map[Code]string{
	TooManyTasks: QuotaTasks, TooManyJobs: QuotaJobs, TooManyBytes: QuotaBytes, TooManyShapes: QuotaShapes,
	TooManyNumbers: QuotaNumbers,
}

// Quota returns the name of the quota because of which a code refuses, "" for any other code.
func (c Code) Quota() string { return quotaOf[c] }

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
	// Motion is the number of the motion that an Invite or a Motion has made.
	Motion uint64
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
	OK                Code = iota
	Stale                  // below the floor: it is no longer known whether it was executed
	WindowFull             // its number is more than Window above its Ack
	OldIncarnation         // a newer broker of the site has registered
	UnknownSite            // the site never registered
	NameTaken              // the name belongs to another data directory
	UnknownJob             // there is no such job
	NotOwner               // only the owner may do this
	AlreadyEnded           // the job or task has ended
	JobExists              // that job number is known: the submission is a repeat
	JobRetired             // that job number was used or settled before
	TooManyShapes          // the site's open jobs have too many different requirements
	TooManyJobs            // the site has as many open jobs as it may
	OutOfRange             // a number exceeds its bound
	BadParams              // the parameters are not valid
	OldTerm                // a SiteLost by a former leader
	OldOffer               // a newer offer is in force
	OutOfOrder             // a usage batch that is not the next one
	AlreadyFounded         // a second Genesis
	NotFounded             // a command before Genesis
	VersionTooNew          // an apply version that some member does not know
	OlderData              // the data directory does not know the site's latest registration
	PolicySites            // more sites than the policy allows
	TooManyTasks           // the site's open jobs have as many tasks as they may
	TooManyBytes           // the specs of the site's open jobs are as large as they may be
	TooManyNumbers         // the site's job numbers have too many gaps
	NotMember              // the site is not in the roster
	Banned                 // the site was expelled
	NotElector             // the site has no vote
	NeedsMotion            // the electors decide on that
	UnknownInvitation      // no such invitation is kept
	InvitationUsed         // another key has used the invitation
	InvitationExpired      // its time is over
	InvitationRevoked      // it was revoked
	InvitationOther        // it is for another site's name
	Pending                // the electors have not agreed yet
	MotionRefused          // the electors did not agree
	BadSignature           // a signature is not what it should be
	KeyTaken               // the key is a site's already
	OldKey                 // the site's key was replaced meanwhile
	NoRecovery             // the site has no recovery key
	RecoveryStands         // only the recovery key can replace the recovery key
	UnknownMotion          // no such motion is kept
	MotionClosed           // the motion is decided, or its time is over
	TooManyMotions         // too many motions or invitations are open
	LastElector            // nobody would be left to decide
	AlreadySo              // nothing would change
	Busy                   // too many signatures in one entry
	NotSigned              // the command is not signed by the site that it names
	NotLeader              // only the leader of the term may say that
	NotHeld                // nothing of what is named is where it was to be taken from
)

// LastCode is the greatest code.
const LastCode = NotHeld

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
		"start it with its newest data, or recover the site's key and come back on an empty directory (cloudshare guide operator, a wiped disk)",
	PolicySites:  "the federation has more sites than that policy is for (SHAPLEY 12, CE 256): choose CE or ALONE",
	TooManyTasks: "the site's open jobs have as many tasks as they may: wait until some end, or cancel some",
	TooManyBytes: "the specs of the site's open jobs take as many bytes as they may: " +
		"wait until some end, cancel some, or submit arrays",
	TooManyNumbers: "the site's job numbers have too many gaps: " +
		"wait until its oldest jobs that are on their way are taken",
	NotMember:         "the site is no member of the federation: have a member invite it (cloudshare invite)",
	Banned:            "the electors have expelled the site",
	NotElector:        "the site is no elector: ask one to do it (cloudshare members shows who is)",
	NeedsMotion:       "the electors decide on that: make a motion of it",
	UnknownInvitation: "no such invitation is known here: ask for another one",
	InvitationUsed:    "the invitation was used, with another key: ask for another one, and how that came about",
	InvitationExpired: "the invitation's time is over: ask for another one",
	InvitationRevoked: "the invitation was revoked: ask for another one",
	InvitationOther:   "the invitation is for another site's name: start the site under that name, or ask for another one",
	Pending:           "the electors have not agreed yet",
	MotionRefused:     "the electors did not agree",
	BadSignature:      "a signature is not by the key that it should be by",
	KeyTaken:          "the key is in use already: make another one",
	OldKey:            "the site's key was replaced meanwhile: look at cloudshare members, and begin again",
	NoRecovery:        "the site has no recovery key: the electors can give its name to another key (cloudshare rebind)",
	RecoveryStands:    "the site has a recovery key: only that can replace itself",
	UnknownMotion:     "no such motion is kept",
	MotionClosed:      "the motion is decided, or its time is over",
	TooManyMotions:    "too many motions or invitations are open: wait until some are decided, or revoke some",
	LastElector:       "nobody would be left to decide: make another site an elector first",
	AlreadySo:         "it is so already",
	Busy:              "too many signatures stand in one entry: it is tried again",
	NotSigned: "the command is not signed by the site that it names, with the key that the federation knows: " +
		"look at cloudshare members",
	NotLeader: "only the leader of the term may say that",
	NotHeld:   "nothing of that is held, or waits to be held: it runs, has ended, or its job has no gates",
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

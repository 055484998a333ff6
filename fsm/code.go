package fsm

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
	TooManyShapes:  "open jobs of the site have too many different requirements (size, image, sites, selectors): use fewer, or wait until some end",
	TooManyJobs:    "the federation's queue is full: try again later",
	OutOfRange:     "a number is out of its range",
	BadParams:      "the parameters are not valid",
	OldTerm:        "the lead that found this is no longer the lead",
	OldOffer:       "a newer offer stands",
	OutOfOrder:     "the usage batch is not the next one",
	AlreadyFounded: "the federation has been founded",
	NotFounded:     "the federation has not been founded",
	VersionTooNew:  "a member's broker does not know that apply version: upgrade it",
	OlderData:      "the data directory is older than what the federation has seen of this site (was a backup put back?): start it with its newest data, or join with an empty directory under another name",
	PolicySites:    "the federation has more sites than that policy is for (SHAPLEY 12, CE 256): choose CE or ALONE",
}

// String says what the code means, in words that can end an error's text.
func (c Code) String() string {
	if int(c) < len(codeTexts) {
		return codeTexts[c]
	}
	return "unknown code"
}

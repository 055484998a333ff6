package replay

import (
	"fmt"

	"github.com/cloudshare/cloudshare/node/identity"
)

// Report is what going through a history has found.
type Report struct {
	Verdict string `json:"verdict"`
	// Difference is the first thing that is not as it should be; nil: all is.
	Difference *Difference `json:"difference"`
	// Dissent is, by site, the first thing that it has signed otherwise than stands here and others have signed.
	Dissent    []Difference `json:"dissent"`
	Federation string       `json:"federation"` // in hex
	KeptBy     string       `json:"kept_by"`    // by the file's own word
	// Begin is the state that is given, End the one that the entries lead to; both may have been signed.
	Begin Point `json:"begin"`
	End   Point `json:"end"`
	// Signed is the last entry of which some have signed what stands here, Backed the last one of which most have.
	Signed Point `json:"signed"`
	Backed Point `json:"backed"`

	Entries  uint64 `json:"entries"`
	Bundles  uint64 `json:"bundles"`
	Commands uint64 `json:"commands"`
	// Decisions are the assignments that the entries lead to.
	Decisions uint64 `json:"decisions"`
	// Refused are the commands that the state refuses, by the reason.
	Refused map[string]uint64 `json:"refused"`
	// Unsigned are those of them that are not the word of the site that they name.
	Unsigned uint64 `json:"unsigned"`
	// Lost is how often leaders have declared a site lost.
	Lost map[string]uint64 `json:"lost"`
	// Statements are those that agree; Elsewhere are of entries that are not here.
	Statements uint64 `json:"statements"`
	Elsewhere  uint64 `json:"statements_elsewhere"`

	Gaps []Gap `json:"gaps"`
	// Damaged are stretches of a broker's own segments that cannot be read, the first 64.
	Damaged []Damage `json:"damaged"`
	// Cut: entries stand behind the end that cannot be gone through, since some before them are damaged.
	Cut     bool      `json:"cut"`
	Members []Member  `json:"members"`
	Ledger  []Account `json:"ledger"`
	Policy  Policy    `json:"policy"` // of the end
	Notes   []string  `json:"notes"`
	// Unproven is what all this does not show, in words.
	Unproven []string `json:"unproven"`
}

// Kinds of a Difference.
const (
	Damaged   = "damaged"   // the file is not what was written
	Entries   = "entries"   // one is missing, or stands elsewhere
	History   = "history"   // a site has signed other entries
	State     = "state"     // a site has signed another state, or entries lead to another one than is given
	Statement = "statement" // what a site is said to have signed is not signed by its key
	Key       = "key"       // a site has another key
)

// Difference is what is wrong.
type Difference struct {
	Kind  string `json:"kind"`
	Entry uint64 `json:"entry"`
	Site  string `json:"site,omitempty"` // whose word differs
	What  string `json:"what"`           // in words
}

// Point is the moment behind an entry.
type Point struct {
	Entry     uint64   `json:"entry"`
	LogTimeMs int64    `json:"log_time_ms"`
	Chain     string   `json:"chain"` // head of the chain over all entries, in hex
	State     string   `json:"state"` // its hash, in hex
	SignedBy  []string `json:"signed_by"`
}

// Gap is a stretch of entries that are not here; a state was given behind them.
type Gap struct {
	Behind uint64 `json:"behind"`
	To     uint64 `json:"to"`
	// SignedBy are the first who have signed, by keys known before the gap, what follows from the state. Nobody: the
	// state, with its ledger, is the word of whoever made the file.
	SignedBy []string `json:"signed_by"`
	// Damaged: entries in it were kept, and cannot be read or gone through.
	Damaged bool `json:"damaged"`
}

// Damage is a stretch of a file that is not what was written.
type Damage struct {
	File string `json:"file"`
	From int64  `json:"from"` // byte
	To   int64  `json:"to"`   // the one behind it
	// First to Last are the entries that are missing by it; 0: none is, as far as is known.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Member is one at the end, or one whose key was asked about.
type Member struct {
	Site    string          `json:"site"`
	Key     identity.Public `json:"key"`
	Elector bool            `json:"elector"`
	Banned  bool            `json:"banned"`
	// Checked: the key, or one that it replaced in an entry here, is the one that was given.
	Checked bool `json:"checked"`
}

// Account is a site's, at the beginning and at the end, in the units of the policy.
type Account struct {
	Site  string   `json:"site"`
	Begin Standing `json:"begin"`
	End   Standing `json:"end"`
}

// Policy says what a standing is: a sum of weights over quanta, or of their squares.
type Policy struct {
	Policy    string `json:"policy"`
	RateCPU   int64  `json:"rate_cpu"` // of a milli-core
	RateMem   int64  `json:"rate_mem"` // of a MiB
	RateGPU   int64  `json:"rate_gpu"`
	QuantumMs int64  `json:"quantum_ms"`
}

// Standing is what a site has given and used; numbers are decimal text, since they are longer than 64 bits.
type Standing struct {
	Contribution string `json:"contribution"`
	Utility      string `json:"utility"`
	Priority     string `json:"priority"`
}

// unproven is what no history proves.
var unproven = []string{
	"that what ran took as long as its site says: a run is charged as reported, within the log time since its assignment",
	"that the machines that a site offers exist, or are as it says",
	"that log time ran as clocks did: the leader of each term says how far it has moved",
	"that nobody's commands were withheld, delayed or put behind others' by a leader, and that a lost site was really silent",
	"what sites ran for themselves outside the log: they report it, and nobody else has seen it",
	"what a task did, or that its exit code and its output are its own: its site says so",
	"what ran: names, commands and environments are sealed, and are not looked at",
	"whose the keys are: compare them with what each site shows you by another way (--key SITE=KEY)",
	"that no other history was signed, too, by sites that act together: ask each for its own file, or its statements",
	"what came before the beginning, but for what the state there says of it, and what came after the end",
}

// Verdicts of a Report.
const (
	Proven    = "proven"     // nothing differs, and sites have signed what stands here
	Differs   = "differs"    // something does, or a site has signed something else
	NotProven = "not-proven" // nothing differs, but what is given is the word of whoever made the file
)

// FilesWord returns the entry of the last state that is given, if nobody whose key is known has signed it, or anything
// behind it: what the ledger says since is the word of whoever made the file. False: somebody has.
func (r *Report) FilesWord() (entry uint64, ok bool) {
	if len(r.Signed.SignedBy) > 0 {
		return 0, false
	}
	if n := len(r.Gaps); n > 0 {
		return r.Gaps[n-1].To, true
	}
	return r.Begin.Entry, true
}

// judge returns the verdict.
func (r *Report) judge() string {
	_, fileSays := r.FilesWord()
	switch {
	case r.Difference != nil || len(r.Dissent) > 0:
		return Differs
	case fileSays, r.Cut:
		return NotProven
	}
	return Proven
}

// String says in one line what was found.
func (d *Difference) String() string { return fmt.Sprintf("entry %d: %s", d.Entry, d.What) }

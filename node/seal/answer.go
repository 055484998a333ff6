package seal

// Refusal says why an owner gives no key. The numbers are those of the peer port.
type Refusal uint8

// The refusals; Granted is none.
const (
	Granted     Refusal = iota
	NotAssigned         // by the owner's state no attempt of the job is that site's
	NoSecret            // the owner cannot open the payload itself
	TooMany             // the site asks for too many keys
	Behind              // the owner's state is older than that of the site that asks
	refusals
)

var refusalWords = [refusals]string{
	"", "it does not know the task as assigned to this site",
	"it has lost the secret with which the job was sealed: cancel the job there and submit it again",
	"too many keys were asked of it: it answers again in a moment",
	"its state is not as new as this site's yet",
}

// Known reports whether this version knows the refusal.
func (r Refusal) Known() bool { return r < refusals }

// String says why, for people.
func (r Refusal) String() string {
	if r.Known() {
		return refusalWords[r]
	}
	return "it refuses"
}

// MaxKeys is how many keys one question asks for at most.
const MaxKeys = 256

// Answer is what an owner says to one question for a key.
type Answer struct {
	Refusal Refusal
	Key     Key // of what was asked for, if it is Granted
}

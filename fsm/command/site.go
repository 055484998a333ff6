package command

// Register introduces a broker. The state answers with the new incarnation and the smallest job number
// that the broker may use (Result.Incarnation, Result.NextJob). The ID of a Register has Incarnation 0
// and Seq 0; Boot makes it idempotent.
type Register struct {
	Node [16]byte // identity of the data directory; a known site name with another Node is refused
	Boot [16]byte // one start of the process; the same Boot again gives the same incarnation
	// Known are the Boots that the data directory remembers, this one included. If the site's latest
	// Boot is not among them, the directory is older than what the federation has seen (a backup was
	// put back). Then it is refused: it may have forgotten what it promised. Empty: not checked.
	Known [][16]byte
	// HTTP, Peer and Gossip are addresses host:port; Gossip may be empty.
	HTTP, Peer, Gossip string
	MaxVersion         uint32 // the newest apply version that the broker knows
	// After is the incarnation of the site that the broker saw in the state, 0 = none. In a federation with a roster
	// another one is refused as OldIncarnation: nobody can have an old registration executed again, which has no
	// command's number, once the state has forgotten its Boot.
	After uint64
	// Held are the attempts that the site still answers for (running, or ended with the completion on
	// its way). Lost are those that it started and lost track of. An attempt that it was assigned
	// before and that is in neither list was never started and goes back to the queue. A lost one
	// with a Bound goes back when the bound has passed.
	Held, Lost []AttemptRef
}

// Addresses updates where a site's broker listens.
type Addresses struct{ HTTP, Peer, Gossip string }

// Leave parks the command's own site: its attempts have ended, and its waiting jobs stay withdrawn until
// it registers again or its departure period is over.
type Leave struct{}

// Suspect suspends (On) or resumes a site's offers. It is a hint: what runs there continues. On also
// returns the Immediate tasks that the site runs for others to the queue, where they wait until another
// site takes them or the suspicion is withdrawn.
type Suspect struct {
	Site        string
	Incarnation uint64
	On          bool
}

// SiteLost parks a site (architecture D6). Only the leader of Term proposes it.
type SiteLost struct {
	Site        string
	Incarnation uint64
	Term        uint64
}

// Lead introduces the leader of a term: the command's site, which orders the term's entries. The first one of a term
// counts. In a federation with a roster only that site may say what leaders say (Kind.OfLeader). Its ID has Incarnation
// 0 and Seq 0.
type Lead struct{ Term uint64 }

// EncodeLead returns the encoding of a site's Lead.
func EncodeLead(site string, term uint64) []byte {
	return Append(nil, Command{ID: ID{Site: site}, Body: &Lead{Term: term}})
}

// Forget ends a lost or left site's waiting jobs as lost. The account stays.
type Forget struct{ Site string }

// Validate checks the bounds.
func (b *Register) Validate() error {
	return firstError(inAddresses(b.HTTP, b.Peer, b.Gossip), within("known", int64(len(b.Known)), 0, MaxKnown),
		inAttempts("held", b.Held, MaxHeld), inAttempts("lost", b.Lost, MaxHeld))
}

// Validate checks the addresses' lengths.
func (b *Addresses) Validate() error { return inAddresses(b.HTTP, b.Peer, b.Gossip) }

// Validate implements Body.
func (b *Leave) Validate() error { return nil }

// Validate implements Body.
func (b *Lead) Validate() error { return nil }

// Validate checks the site's name.
func (b *Suspect) Validate() error { return inSite("site", b.Site) }

// Validate checks the site's name.
func (b *SiteLost) Validate() error { return inSite("site", b.Site) }

// Validate checks the site's name.
func (b *Forget) Validate() error { return inSite("site", b.Site) }

// Close says why the command's own site lends nothing or, with NotClosed, that it lends again. It changes
// nothing but what is shown of the site.
type Close struct{ Why Closure }

// Closure is why a site lends nothing.
type Closure uint8

// The closures.
const (
	NotClosed     Closure         = iota
	ClosedDrain                   // its operator drains it
	ClosedLeaving                 // it leaves the federation
	ClosedDisk                    // its broker's disk is full
	ClosedTrouble                 // none of its machines can start tasks
	ClosedDiffers                 // other sites contradict its broker's history or state
	LastClosure   = ClosedDiffers // the greatest closure
)

var closureNames = [...]string{"", "draining", "leaving", "disk-full", "trouble", "state-differs"}

// String returns the closure's name in the API; empty for NotClosed.
func (c Closure) String() string {
	if int(c) < len(closureNames) {
		return closureNames[c]
	}
	return "unknown"
}

// Validate checks that the reason is known.
func (b *Close) Validate() error { return within("why", int64(b.Why), 0, int64(LastClosure)) }

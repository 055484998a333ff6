package command

// Kind numbers a command on the wire. Numbers are never reused.
type Kind uint8

// The commands. A kind added after a release needs an apply version that allows it.
const (
	KindGenesis   Kind = 1  // the first entry of a federation
	KindRegister  Kind = 2  // a broker introduces itself (a new incarnation)
	KindSubmit    Kind = 3  // publish jobs
	KindOffer     Kind = 4  // the capacity that a site exposes now
	KindStarted   Kind = 5  // attempts began to run
	KindComplete  Kind = 6  // attempts ended
	KindDecline   Kind = 7  // a site cannot run what was assigned to it
	KindCancel    Kind = 8  // the owner ends a job, or one task
	KindUsage     Kind = 9  // what a site ran for itself outside the log
	KindSiteLost  Kind = 10 // the leader found that a site's lease expired
	KindForget    Kind = 11 // a lost or left site will not come back: its waiting jobs end
	KindPolicy    Kind = 12 // change the federation's parameters
	KindSuspect   Kind = 13 // suspend or resume a site's offers (a hint, not a loss)
	KindAddresses Kind = 14 // a site's addresses changed
	KindLeave     Kind = 15 // a site leaves on its own, and may come back
	KindBound     Kind = 16 // when attempts without a watchdog are certainly dead
	KindRaise     Kind = 17 // continue with a newer apply version
	KindRecover   Kind = 18 // continue without the voters that are permanently lost
	KindClose     Kind = 19 // why a site lends nothing, or that it lends again
	KindInvite    Kind = 20 // a member invites a site
	KindRevoke    Kind = 21 // an invitation ends
	KindAdmit     Kind = 22 // who was invited enters
	KindRekey     Kind = 23 // a site's key is replaced
	KindMotion    Kind = 24 // something is put to the electors
	KindVote      Kind = 25 // an elector votes
	KindGossipKey Kind = 26 // the next key of gossip
	KindRenice    Kind = 27 // an owner changes the order of its waiting jobs
	KindOrphans   Kind = 28 // attempts lost what watched them or their network, not their site; since version 2
	KindLead      Kind = 29 // a leader introduces itself
	KindDeliver   Kind = 30 // what became of outputs that their owner was to fetch
	KindAhead     Kind = 31 // how long a site's machines idle between two tasks; since version 3
	KindHandBack  Kind = 32 // a site returns what it has not begun; since version 3
	// KindRelease: an owner lets held tasks wait, holds waiting ones, or ends held ones; since version 4.
	KindRelease Kind = 33
	// KindPrioritize: an owner changes the priority of its jobs; since version 4.
	KindPrioritize Kind = 34
)

// LastKind is the greatest kind.
const LastKind = KindPrioritize

// OfLeader reports whether only the leader's own broker proposes commands of a kind: what it has judged of others, and
// what it puts in force for all.
func (k Kind) OfLeader() bool {
	return k == KindSiteLost || k == KindSuspect || k == KindRaise || k == KindGossipKey || k == KindLead
}

// Since returns the first apply version that has a kind. A member that only knows older ones cannot read it:
// until that version is in force, all refuse it.
func (k Kind) Since() uint32 {
	switch {
	case k == KindOrphans:
		return OrphansVersion
	case k == KindAhead || k == KindHandBack:
		return AheadVersion
	case k == KindRelease || k == KindPrioritize:
		return GatesVersion
	}
	return FirstVersion
}

// Since returns the first apply version that has what a command says: its kind, and of a Submit all its jobs. A member
// that only knows older ones cannot read it.
func Since(b Body) uint32 {
	if submit, ok := b.(*Submit); ok {
		for i := range submit.Jobs {
			if submit.Jobs[i].Gated {
				return GatesVersion
			}
		}
	}
	return b.Kind().Since()
}

// Kind implements Body.
func (*Genesis) Kind() Kind   { return KindGenesis }
func (*Register) Kind() Kind  { return KindRegister }
func (*Submit) Kind() Kind    { return KindSubmit }
func (*Offer) Kind() Kind     { return KindOffer }
func (*Started) Kind() Kind   { return KindStarted }
func (*Complete) Kind() Kind  { return KindComplete }
func (*Decline) Kind() Kind   { return KindDecline }
func (*Cancel) Kind() Kind    { return KindCancel }
func (*Usage) Kind() Kind     { return KindUsage }
func (*SiteLost) Kind() Kind  { return KindSiteLost }
func (*Forget) Kind() Kind    { return KindForget }
func (*SetParams) Kind() Kind { return KindPolicy }
func (*Suspect) Kind() Kind   { return KindSuspect }
func (*Addresses) Kind() Kind { return KindAddresses }
func (*Leave) Kind() Kind     { return KindLeave }
func (*Close) Kind() Kind     { return KindClose }
func (*Bound) Kind() Kind     { return KindBound }
func (*Raise) Kind() Kind     { return KindRaise }
func (*Recover) Kind() Kind   { return KindRecover }
func (*Invite) Kind() Kind    { return KindInvite }
func (*Revoke) Kind() Kind    { return KindRevoke }
func (*Admit) Kind() Kind     { return KindAdmit }
func (*Rekey) Kind() Kind     { return KindRekey }
func (*Motion) Kind() Kind    { return KindMotion }
func (*Vote) Kind() Kind      { return KindVote }
func (*GossipKey) Kind() Kind { return KindGossipKey }
func (*Renice) Kind() Kind    { return KindRenice }
func (*Orphans) Kind() Kind   { return KindOrphans }
func (*Lead) Kind() Kind      { return KindLead }
func (*Deliver) Kind() Kind   { return KindDeliver }
func (*Ahead) Kind() Kind     { return KindAhead }
func (*HandBack) Kind() Kind  { return KindHandBack }
func (*Release) Kind() Kind   { return KindRelease }

// Kind implements Body.
func (*Prioritize) Kind() Kind { return KindPrioritize }

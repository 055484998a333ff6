package roster

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Bounds are the sizes at which the roster refuses or forgets. All members have the same ones.
type Bounds struct {
	Members     int // sites that were ever admitted
	Invitations int // kept, those that are over included
	ByInviter   int // open invitations of one site
	Motions     int // kept, those that are decided included
	ByProposer  int // open motions of one site, without invitations
	Electors    int // up to which invitations make electors
	MostVotes   int // electors there may be at all
	Checks      int // signatures checked in one entry
	Commands    int // of the roster executed in one entry
	MotionMs    int64
}

// RealBounds returns the bounds of every federation, but for Members, which the state decides.
func RealBounds(members int) Bounds {
	return Bounds{
		Members: members, Invitations: 1024, ByInviter: 32, Motions: 1024, ByProposer: 16,
		Electors: 5, MostVotes: 64, Checks: 64, Commands: 256, MotionMs: command.MaxInvitationMs,
	}
}

// Member is a site that was admitted. It is never removed: its name stays its own.
type Member struct {
	Site       string
	Key        signature.Key
	Recovery   signature.Key // zero: none was set
	Generation uint64        // how often Key or Recovery were replaced
	Elector    bool
	Banned     bool
	// Seen is one more than the last epoch in which it was here, registered; 0 = never yet. An elector counts if that
	// is the present epoch: neither those that were lost with the last one nor those that never came after they were
	// admitted keep the others from deciding.
	Seen    uint64
	SinceMs int64 // log time of its admission
}

// Moment is where in the log a command stands.
type Moment struct {
	Index uint64 // entry
	Ms    int64  // log time
	Epoch uint64
}

// Roster is the members, invitations and motions. The zero value has bounds of zero: use New. It is not safe for
// concurrent use.
type Roster struct {
	bounds Bounds

	members     []*Member     // by admission; a Member is replaced, never changed
	invitations []*Invitation // by creation; likewise
	motions     []*Motion     // by number; likewise
	last        uint64        // number of the last motion
	changed     uint64        // entry in which members last changed
	gossip      GossipKey
	recount     bool // who may vote has changed: what is open is to be counted again

	// Derived.
	sites map[string]int
	keys  map[signature.Key]int // of those that are not banned, too

	electors []int // places of members with a vote that are not banned, sorted

	// Of one entry; not part of the state.
	checks   int // signatures checked
	commands int // executed
}

// New returns the empty roster of a federation that has none: any name registers, as in simulations.
func New(b Bounds) *Roster {
	return &Roster{bounds: b, sites: map[string]int{}, keys: map[signature.Key]int{}}
}

// Founded reports whether the federation has a roster: then only who is in it takes part.
func (r *Roster) Founded() bool { return len(r.members) > 0 }

// Changed returns the entry in which members, their keys or their standing last changed.
func (r *Roster) Changed() uint64 { return r.changed }

// BeginEntry begins the count of an entry's commands and signatures.
func (r *Roster) BeginEntry() { r.checks, r.commands = 0, 0 }

// Found makes the founder the first member, and an elector.
func (r *Roster) Found(site string, key signature.Key, at Moment) {
	r.add(Member{Site: site, Key: key, Elector: true, Seen: at.Epoch + 1, SinceMs: at.Ms}, at)
}

// Member returns a site's entry.
func (r *Roster) Member(site string) (Member, bool) {
	if i, ok := r.sites[site]; ok {
		return *r.members[i], true
	}
	return Member{}, false
}

// Here records that a site is here in this epoch: from now on it counts among the electors, if it is one.
func (r *Roster) Here(site string, at Moment) {
	if i, ok := r.sites[site]; ok && r.members[i].Seen != at.Epoch+1 {
		m := *r.members[i]
		m.Seen = at.Epoch + 1
		r.replace(i, m, at)
	}
}

// Recover begins an epoch at a site: it decides, with whoever comes back.
func (r *Roster) Recover(site string, at Moment) {
	i, ok := r.sites[site]
	if !ok {
		return
	}
	m := *r.members[i]
	m.Seen, m.Elector, m.Banned = at.Epoch+1, true, false
	r.replace(i, m, at)
	r.recount = true
}

// Deciding reports whether a member's vote counts now.
func (m *Member) Deciding(epoch uint64) bool { return m.Elector && !m.Banned && m.Seen == epoch+1 }

// Electors returns the sites whose votes count, by admission.
func (r *Roster) Electors(epoch uint64) []string {
	var out []string
	for _, i := range r.electors {
		if m := r.members[i]; m.Deciding(epoch) {
			out = append(out, m.Site)
		}
	}
	return out
}

func (r *Roster) add(m Member, at Moment) {
	r.sites[m.Site], r.keys[m.Key] = len(r.members), len(r.members)
	if m.Elector {
		r.electors = append(r.electors, len(r.members))
	}
	r.members = append(r.members, &m)
	r.changed = at.Index
}

// replace puts a member's new entry in the place of the old one.
func (r *Roster) replace(i int, m Member, at Moment) {
	if old := r.members[i].Key; old != m.Key {
		delete(r.keys, old)
		r.keys[m.Key] = i
	}
	r.members[i] = &m
	r.changed = at.Index
	switch at, named := slices.BinarySearch(r.electors, i); {
	case named && (!m.Elector || m.Banned):
		r.electors = slices.Delete(r.electors, at, at+1)
	case !named && m.Elector && !m.Banned:
		r.electors = slices.Insert(r.electors, at, i)
	}
}

// spend counts a command, and reports whether the entry may have it executed: their number bounds how long an entry
// takes.
func (r *Roster) spend() bool {
	r.commands++
	return r.commands <= r.bounds.Commands
}

// check reports whether the entry may have n more signatures checked, and counts them.
func (r *Roster) check(n int) bool {
	r.checks += n
	return r.checks <= r.bounds.Checks
}

// Checks returns how many signatures this entry has had checked, and Commands how many commands were executed.
func (r *Roster) Checks() int { return min(r.checks, r.bounds.Checks) }

// Commands is described at Checks.
func (r *Roster) Commands() int { return min(r.commands, r.bounds.Commands) }

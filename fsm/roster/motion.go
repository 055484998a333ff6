package roster

import (
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// MotionState is what became of a motion.
type MotionState uint8

// The states. An open one may have expired: that is told by its UntilMs.
const (
	Undecided MotionState = iota
	Passed
	Rejected
	Withdrawn       // with the invitation that it was for
	Void            // it passed, and could not be done any more
	lastMotionState = Void
)

var motionStates = [...]string{"open", "passed", "rejected", "withdrawn", "void"}

// String returns the state's name in the API.
func (s MotionState) String() string {
	if int(s) < len(motionStates) {
		return motionStates[s]
	}
	return "unknown"
}

// Motion is what the electors decide on.
type Motion struct {
	Number   uint64 // from 1
	Kind     command.MotionKind
	Site     string        // whom it is about; "" for a policy
	Key      signature.Key // of a rebinding; of an admission the invitation's
	Params   command.Params
	By       string
	OpenedMs int64 // log time
	UntilMs  int64 // log time after which nobody votes any more
	State    MotionState
	EndedMs  int64  // log time of its decision, while State is not Undecided
	Votes    []Vote // in the order in which they were first cast
}

// Vote is one elector's.
type Vote struct {
	Site string
	Yes  bool
}

// Open reports whether votes on the motion still count.
func (m *Motion) Open(nowMs int64) bool { return m.State == Undecided && nowMs < m.UntilMs }

// Propose makes a motion and returns its number. If it passed at once it is returned, too: what it means for the rest
// of the state is the caller's to do.
func (r *Roster) Propose(by string, c *command.Motion, at Moment) (uint64, *Motion, command.Code) {
	if !r.spend() {
		return 0, nil, command.Busy
	}
	if code := r.proposable(by, c, at); code != command.OK {
		return 0, nil, code
	}
	if same := r.same(c, at); same != nil { // who proposes it again votes for it
		return same.Number, r.cast(r.place(same.Number), by, true, at), command.OK
	}
	if r.openMotions(by, at) >= r.bounds.ByProposer || !r.makeRoomForMotion(at) {
		return 0, nil, command.TooManyMotions
	}
	r.last++
	m := &Motion{
		Number: r.last, Kind: c.What, Site: strings.Clone(c.Site), Key: c.Key, By: strings.Clone(by),
		OpenedMs: at.Ms, UntilMs: at.Ms + r.bounds.MotionMs,
	}
	if c.Params != nil {
		m.Params = *c.Params
	}
	r.motions = append(r.motions, m)
	return r.last, r.cast(len(r.motions)-1, by, true, at), command.OK
}

// proposable says why a motion cannot be made.
func (r *Roster) proposable(by string, c *command.Motion, at Moment) command.Code {
	m, known := r.Member(c.Site)
	switch {
	case !r.isMember(by):
		return command.NotMember
	case c.What == command.MotionPolicy:
		return command.OK
	case !known:
		return command.UnknownSite
	}
	return r.changes(c.What, &m, c.Key, at)
}

// changes says why something cannot be decided about a member: it is so already, or must not be.
func (r *Roster) changes(kind command.MotionKind, m *Member, key signature.Key, at Moment) command.Code {
	_, used := r.keys[key]
	last := m.Deciding(at.Epoch) && len(r.Electors(at.Epoch)) == 1
	switch kind {
	case command.MotionElector:
		if m.Banned || m.Elector {
			return command.AlreadySo
		}
		if len(r.electors) >= r.bounds.MostVotes {
			return command.OutOfRange
		}
	case command.MotionNoElector, command.MotionBan:
		if kind == command.MotionBan && m.Banned || kind == command.MotionNoElector && !m.Elector {
			return command.AlreadySo
		}
		if last {
			return command.LastElector
		}
	case command.MotionUnban:
		if !m.Banned {
			return command.AlreadySo
		}
	case command.MotionRebind:
		if used {
			return command.KeyTaken
		}
	case command.MotionAdmit, command.MotionPolicy, command.MotionForget:
	}
	return command.OK
}

// same returns the open motion that would do the same.
func (r *Roster) same(c *command.Motion, at Moment) *Motion {
	for _, m := range r.motions {
		if m.Open(at.Ms) && m.Kind == c.What && m.Site == c.Site && m.Key == c.Key &&
			(c.Params == nil || m.Params == *c.Params) {
			return m
		}
	}
	return nil
}

// Vote counts an elector's vote, and returns the motion if it passed; see Propose.
func (r *Roster) Vote(by string, number uint64, yes bool, at Moment) (*Motion, command.Code) {
	n := r.place(number)
	switch {
	case !r.spend():
		return nil, command.Busy
	case n < 0:
		return nil, command.UnknownMotion
	case !r.decides(by, at):
		return nil, command.NotElector
	case !r.motions[n].Open(at.Ms):
		if slices.Contains(r.motions[n].Votes, Vote{by, yes}) {
			return nil, command.OK // the same vote again
		}
		return nil, command.MotionClosed
	}
	return r.cast(n, by, yes, at), command.OK
}

// decides reports whether a site's vote counts.
func (r *Roster) decides(site string, at Moment) bool {
	m, ok := r.Member(site)
	return ok && m.Deciding(at.Epoch)
}

// cast counts a vote, if the site has one, and decides what can be decided.
func (r *Roster) cast(n int, by string, yes bool, at Moment) *Motion {
	if !r.decides(by, at) {
		return nil
	}
	m := *r.motions[n]
	m.Votes = slices.Clone(m.Votes)
	if i := slices.IndexFunc(m.Votes, func(v Vote) bool { return v.Site == by }); i >= 0 {
		m.Votes[i].Yes = yes
	} else {
		m.Votes = append(m.Votes, Vote{strings.Clone(by), yes})
	}
	r.motions[n] = &m
	return r.decide(n, at)
}

// Tally returns how the electors of now have voted on a motion.
func (r *Roster) Tally(m *Motion, epoch uint64) (yes, no, electors int) {
	for _, place := range r.electors {
		e := r.members[place]
		if !e.Deciding(epoch) {
			continue
		}
		electors++
		if i := slices.IndexFunc(m.Votes, func(v Vote) bool { return v.Site == e.Site }); i >= 0 {
			if m.Votes[i].Yes {
				yes++
			} else {
				no++
			}
		}
	}
	return yes, no, electors
}

// decide decides a motion if more than half of the electors agree, or cannot any more.
func (r *Roster) decide(n int, at Moment) *Motion {
	yes, no, electors := r.Tally(r.motions[n], at.Epoch)
	switch {
	case 2*yes > electors:
		return r.pass(n, at)
	case 2*(electors-no) <= electors:
		r.close(n, Rejected, at)
		if m := r.motions[n]; m.Kind == command.MotionAdmit {
			r.refuseInvitation(m.Key)
		}
	}
	return nil
}

// EndEntry decides again what is open if who may vote has changed, once an entry, and returns what passed with it;
// see Propose.
func (r *Roster) EndEntry(at Moment) (passed []*Motion) {
	if !r.recount {
		return nil
	}
	r.recount = false
	for n := range r.motions {
		if !r.motions[n].Open(at.Ms) {
			continue
		}
		if m := r.decide(n, at); m != nil {
			passed = append(passed, m)
		}
	}
	return passed
}

// Unfinished reports whether the next entry has motions to count again.
func (r *Roster) Unfinished() bool { return r.recount }

// pass does what a motion says, as far as it is about the roster.
func (r *Roster) pass(n int, at Moment) *Motion {
	m := r.motions[n]
	if code := r.do(m, at); code != command.OK {
		r.close(n, Void, at)
		if m.Kind == command.MotionAdmit {
			r.refuseInvitation(m.Key) // the name or the key was taken meanwhile
		}
		return nil
	}
	r.close(n, Passed, at)
	return r.motions[n]
}

func (r *Roster) do(m *Motion, at Moment) command.Code {
	switch m.Kind {
	case command.MotionPolicy:
		return command.OK
	case command.MotionAdmit:
		if n := r.find(m.Key); n >= 0 && r.invitations[n].State == Claimed {
			return r.enter(n, at)
		}
		return command.OK // the invitation lets in who uses it
	case command.MotionElector, command.MotionNoElector, command.MotionBan, command.MotionUnban, command.MotionRebind,
		command.MotionForget:
	}
	i := r.sites[m.Site]
	x := *r.members[i]
	if code := r.changes(m.Kind, &x, m.Key, at); code != command.OK {
		return code
	}
	switch m.Kind {
	case command.MotionElector:
		x.Elector = true
	case command.MotionNoElector:
		x.Elector = false
	case command.MotionBan:
		x.Banned, x.Elector = true, false
		r.revokeAllOf(m.Site, at)
		r.exposeGossip()
	case command.MotionUnban:
		x.Banned = false
	case command.MotionRebind:
		x.Key, x.Recovery, x.Generation = m.Key, signature.Key{}, x.Generation+1
		r.exposeGossip()
	case command.MotionForget, command.MotionAdmit, command.MotionPolicy:
		return command.OK
	}
	r.replace(i, x, at)
	r.recount = true
	return command.OK
}

// revokeAllOf ends what a banned site has invited.
func (r *Roster) revokeAllOf(site string, at Moment) {
	for n, i := range r.invitations {
		if i.By == site && i.State < Admitted {
			r.endInvitation(n, Revoked)
			r.closeMotion(i.Motion, Withdrawn, at)
		}
	}
}

// refuseInvitation ends an invitation that the electors did not agree to.
func (r *Roster) refuseInvitation(key signature.Key) {
	if n := r.find(key); n >= 0 && r.invitations[n].State < Admitted {
		r.endInvitation(n, Refused)
	}
}

// Void records that a motion passed and could not be done.
func (r *Roster) Void(number uint64) {
	if n := r.place(number); n >= 0 {
		m := *r.motions[n]
		m.State = Void
		r.motions[n] = &m
	}
}

func (r *Roster) close(n int, s MotionState, at Moment) {
	m := *r.motions[n]
	m.State, m.EndedMs = s, at.Ms
	r.motions[n] = &m
}

// closeMotion closes a motion that is open.
func (r *Roster) closeMotion(number uint64, s MotionState, at Moment) {
	if n := r.place(number); n >= 0 && r.motions[n].State == Undecided {
		r.close(n, s, at)
	}
}

// place returns where a motion stands, or -1.
func (r *Roster) place(number uint64) int {
	n, found := slices.BinarySearchFunc(r.motions, number, func(m *Motion, want uint64) int {
		switch {
		case m.Number < want:
			return -1
		case m.Number > want:
			return 1
		}
		return 0
	})
	if !found {
		return -1
	}
	return n
}

func (r *Roster) motion(number uint64) *Motion {
	if n := r.place(number); n >= 0 {
		return r.motions[n]
	}
	return nil
}

// openMotions returns how many open motions a site has made, without its invitations'.
func (r *Roster) openMotions(site string, at Moment) (n int) {
	for _, m := range r.motions {
		if m.By == site && m.Kind != command.MotionAdmit && m.Open(at.Ms) {
			n++
		}
	}
	return n
}

// makeRoomForMotion has room for one more motion: the oldest that is over is forgotten, unless an invitation that is
// open needs it.
func (r *Roster) makeRoomForMotion(at Moment) bool {
	if len(r.motions) < r.bounds.Motions {
		return true
	}
	n := slices.IndexFunc(r.motions, func(m *Motion) bool { return !m.Open(at.Ms) && !r.needed(m, at) })
	if n >= 0 {
		r.motions = slices.Delete(r.motions, n, n+1)
	}
	return n >= 0
}

// needed reports whether an open invitation refers to a motion.
func (r *Roster) needed(m *Motion, at Moment) bool {
	if m.Kind != command.MotionAdmit {
		return false
	}
	n := r.find(m.Key)
	return n >= 0 && r.invitations[n].open(at.Ms)
}

package fsm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// incarnationShift makes the incarnations of an epoch begin above those of the one before. A lost entry may
// have assigned one that this state does not know, and a command with it must not be taken for one of
// another process.
const incarnationShift = 18

// maxBoots is how many earlier processes of a site are remembered.
const maxBoots = 8

// Admit returns an error if a data directory may not join under a site's name.
func (s *fleet) Admit(name string, node [16]byte) error {
	if !command.ValidSite(name) {
		return fmt.Errorf("%w: %.80q is no site name (a DNS label in lower case)", command.ErrBadID, name)
	}
	if err := s.inRoster(name, node); err != nil {
		return err
	}
	if x := s.byName[name]; x != nil && x.node != node {
		return fmt.Errorf("%w: site %s belongs to another data directory: start it there, or choose another name",
			ErrNameTaken, name)
	}
	if x := s.byNode[node]; x != nil && x.name != name {
		return fmt.Errorf("%w: this data directory belongs to site %s, not %s", ErrNameTaken, x.name, name)
	}
	return nil
}

// register executes a Register: it starts a new incarnation, unless the same process asks again.
func (s *State) register(name string, c *command.Register) command.Result {
	x := s.byName[name]
	code := s.rosterCode(name, c.Node)
	follows := !s.roster.Founded() || x == nil && c.After == 0 || x != nil && c.After == x.incarnation
	switch {
	case code != command.OK:
		return command.Result{Code: code, Index: s.index}
	case s.Admit(name, c.Node) != nil:
		return command.Result{Code: command.NameTaken, Index: s.index}
	case c.MaxVersion < max(s.version, s.raised): // it may have been raised in this entry
		return command.Result{Code: command.VersionTooNew, Index: s.index}
	case x == nil && len(s.sites) >= s.bounds.members:
		return command.Result{Code: command.OutOfRange, Index: s.index}
	case x == nil && !follows:
		return command.Result{Code: command.OldIncarnation, Index: s.index}
	case x == nil:
		x = s.addSite(name)
		s.join(1)
		s.noteJoined(x)
		x.node, s.byNode[c.Node] = c.Node, x
	case x.boots[0] == c.Boot:
		return x.registered
	case slices.Contains(x.boots, c.Boot) || !follows:
		return command.Result{Code: command.OldIncarnation, Index: s.index}
	case len(c.Known) > 0 && x.lastBoot() != unknownBoot && !slices.Contains(c.Known, x.lastBoot()):
		return command.Result{Code: command.OlderData, Index: s.index}
	}
	s.roster.Here(name, s.moment())
	s.incarnate(x, c)
	x.registered = command.Result{
		Index: s.index, Incarnation: x.incarnation, NextJob: max(x.maxNum+1, x.settled, 1), NextUsage: x.usageBatch + 1,
	}
	return x.registered
}

// incarnate starts a site's next incarnation.
func (s *State) incarnate(x *site, c *command.Register) {
	x.boot(c.Boot, s.bounds.boots)
	x.http, x.peer, x.gossip = strings.Clone(c.HTTP), strings.Clone(c.Peer), strings.Clone(c.Gossip)
	x.maxVersion, s.next = c.MaxVersion, 0
	x.incarnation = max(x.incarnation, s.Epoch()<<incarnationShift) + 1
	x.taken = s.index
	x.floor, x.window = 0, nil
	if x.gone {
		s.join(1)
	}
	away := !x.present()
	x.state, x.lostMs, x.gone, x.closed, x.idleMs = Alive, 0, false, command.NotClosed, 0
	if away {
		s.unpark(x)
		s.tellSite(EventSiteReturned, x)
	} else {
		s.tellSite(EventSiteRegistered, x)
	}
	s.install(x, &command.Offer{})
	x.offerVersion = 0
	s.answerFor(x, c)
}

// lastBoot returns the latest process of the site that this state knows. A later one may be in an entry
// that was lost with an epoch.
func (x *site) lastBoot() [16]byte {
	for _, b := range x.boots {
		if b != unknownBoot {
			return b
		}
	}
	return unknownBoot
}

// boot records the site's latest process; the newest most are remembered.
func (x *site) boot(b [16]byte, most int) {
	if len(x.boots) == 0 || x.boots[0] != b {
		n := min(len(x.boots), most-1)
		x.boots = slices.Insert(x.boots[:n:n], 0, b)
	}
}

// word is what a registration said of an attempt, until it is acted on.
type word uint8

const (
	wordNone word = iota
	wordHeld
	wordLost
	lastWord = wordLost
)

// answerFor settles each attempt of a site's earlier incarnation. Held ones stay as they are. Lost ones count
// as a loss. One named in neither list was never started and returns to the queue without a loss: its site
// would have a record of it. Bounds matter only for lost ones, which may still run. What the site once
// called lost stays lost.
func (s *State) answerFor(x *site, c *command.Register) {
	s.forgetWords(x)
	for i := range c.Held {
		s.noteWord(x, &c.Held[i], wordHeld)
	}
	for i := range c.Lost {
		s.noteWord(x, &c.Lost[i], wordLost)
	}
	s.undertake(chore{kind: choreAnswer, site: x.id})
}

// forgetWords drops the work left for an earlier registration: the new one answers for all attempts.
func (s *State) forgetWords(x *site) {
	for i := len(s.chores) - 1; i >= 0; i-- { // backwards: who registers repeatedly finds the last one soon
		if s.chores[i].kind != choreAnswer || s.chores[i].site != x.id {
			continue
		}
		s.dropChore(i)
		for _, slot := range x.holds {
			if a := s.attempts.Get(slot); a != nil && a.word == wordHeld {
				s.attempts.Mut(slot, s.epoch).word = wordNone
			}
		}
		x.holds = nil
		return
	}
}

func (s *lifecycle) noteWord(x *site, ref *command.AttemptRef, w word) {
	s.steps.used += stepLook
	slot, ok := s.findAttempt(ref, x)
	if !ok {
		slot, ok = s.findLeft(ref, x)
	}
	if ok {
		if a := s.attempts.Mut(slot, s.epoch); a.word == wordNone {
			a.word = w
			x.hold(slot, w)
		}
	}
}

// hold records which attempts a site's registration holds, so that a later one need not look at everything
// that the site runs.
func (x *site) hold(slot uint64, w word) {
	if w == wordHeld {
		x.holds = append(x.holds, slot)
	}
}

// answer applies to an attempt what its site's registration said of it.
func (s *lifecycle) answer(slot uint64) {
	a := s.attempts.Mut(slot, s.epoch)
	w := a.word
	switch a.word = wordNone; {
	case a.given:
		return
	case a.phase == phaseLeft:
		if w == wordLost || w == wordNone && a.phaseBefore == phaseRunning {
			s.countLoss(slot, bySite)
		}
		s.answerForLeft(slot, w == wordHeld, true)
		return
	}
	s.unshelve(slot)
	switch {
	case w == wordHeld:
		s.tellAttempt(EventTaskAdopted, a)
	case w == wordLost || a.phase == phaseRunning: // it was reported running, so it did start
		s.giveUp(slot, "")
	default:
		s.drop(slot, neverRan)
	}
}

// Internal outcomes of attempts that were not started: they are not losses.
const (
	neverRan command.Outcome = 255
	declined command.Outcome = 254
	doubted  command.Outcome = 253
	unopened command.Outcome = 252
	returned command.Outcome = 251
)

// drop ends an attempt without its site's report: nobody is charged.
func (s *lifecycle) drop(slot uint64, o command.Outcome) {
	a := *s.attempts.Get(slot)
	s.unsetStarted(&a)
	r := s.recordOf(&a)
	s.dropAttempt(slot)
	s.sites[a.site].taken = s.index
	if o == neverRan && !s.isStopping(&a) {
		s.requeue(&a, r, o)
	} else {
		s.settleTask(&a, r, command.Lost)
	}
	s.noteNotRun(&a)
}

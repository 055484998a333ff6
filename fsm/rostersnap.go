package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// roster writes who the members are.
func (w *snapWriter) roster(c *roster.Contents) {
	w.uint(uint64(len(c.Members)))
	for _, m := range c.Members {
		w.text(m.Site)
		w.key(m.Key)
		w.key(m.Recovery)
		w.uint(m.Generation, marks(m.Elector, m.Banned), m.Seen)
		w.int(m.SinceMs)
		w.flush()
	}
	w.uint(c.Last, c.Changed, marks(c.Recount))
	w.gossip(&c.Gossip)
	w.uint(uint64(len(c.Invitations)))
	for _, i := range c.Invitations {
		w.key(i.Key)
		w.text(i.Site)
		w.text(i.By)
		w.uint(marks(i.Elector), i.Motion, uint64(i.State))
		w.int(i.UntilMs)
		w.key(i.Claimant)
	}
	w.uint(uint64(len(c.Motions)))
	for _, m := range c.Motions {
		w.motion(m)
	}
	w.flush()
}

func (w *snapWriter) gossip(g *roster.GossipKey) {
	w.uint(g.Generation)
	w.key(g.Key)
	if g.Generation > 0 {
		w.int(g.SinceMs)
		w.bool(g.Exposed)
	}
}

func (w *snapWriter) motion(m *roster.Motion) {
	w.uint(m.Number, uint64(m.Kind), uint64(m.State))
	w.text(m.Site)
	w.text(m.By)
	w.key(m.Key)
	w.int(m.OpenedMs, m.UntilMs, m.EndedMs)
	if m.Kind == command.MotionPolicy {
		w.params(&m.Params)
	}
	w.uint(uint64(len(m.Votes)))
	for _, v := range m.Votes {
		w.text(v.Site)
		w.bool(v.Yes)
	}
}

func (w *snapWriter) key(k signature.Key) { w.scratch = append(w.scratch, k[:]...) }

// roster reads who the members are.
func (r *snapReader) roster(s *State) {
	var c roster.Contents
	for range r.upTo(uint64(s.bounds.roster.Members), "members") {
		if r.err != nil {
			return
		}
		m := &roster.Member{Site: r.text(63, "site"), Key: r.key(), Recovery: r.key(), Generation: r.uint()}
		flags := r.upTo(3, "standing")
		m.Elector, m.Banned = flags&1 != 0, flags&2 != 0
		m.Seen, m.SinceMs = r.upTo(s.Epoch()+1, "epoch"), r.within(0, s.time, "log time")
		c.Members = append(c.Members, m)
	}
	c.Last, c.Changed, c.Recount = r.uint(), r.upTo(s.index, "entry"), r.bool()
	c.Gossip = r.gossip(s)
	for range r.upTo(uint64(s.bounds.roster.Invitations), "invitations") {
		i := &roster.Invitation{Key: r.key(), Site: r.text(63, "site"), By: r.text(63, "site"), Elector: r.bool()}
		i.Motion, i.State = r.uint(), roster.InvitationState(r.upTo(255, "state"))
		i.UntilMs, i.Claimant = r.int(), r.key()
		c.Invitations = append(c.Invitations, i)
	}
	for range r.upTo(uint64(s.bounds.roster.Motions), "motions") {
		c.Motions = append(c.Motions, r.motion(s))
	}
	if r.err != nil {
		return
	}
	restored, err := roster.Restore(s.bounds.roster, c, s.index)
	if err != nil || restored.Founded() && s.founded == 0 {
		r.fail("roster: %v", err)
		return
	}
	s.roster = restored
}

func (r *snapReader) gossip(s *State) roster.GossipKey {
	g := roster.GossipKey{Generation: r.uint(), Key: r.key()}
	if g.Generation > 0 {
		g.SinceMs, g.Exposed = r.within(0, s.time, "log time"), r.bool()
	}
	return g
}

func (r *snapReader) motion(s *State) *roster.Motion {
	m := &roster.Motion{Number: r.uint(), Kind: command.MotionKind(r.upTo(uint64(command.LastMotion), "motion"))}
	m.State = roster.MotionState(r.upTo(255, "state"))
	m.Site, m.By, m.Key = r.text(63, "site"), r.text(63, "site"), r.key()
	m.OpenedMs, m.UntilMs, m.EndedMs = r.int(), r.int(), r.int()
	if m.Kind == command.MotionPolicy {
		if r.params(&m.Params); r.err == nil && m.Params.Validate() != nil {
			r.fail("a motion's parameters")
		}
	}
	for range r.upTo(uint64(s.bounds.roster.Members), "votes") {
		if r.err != nil {
			break
		}
		m.Votes = append(m.Votes, roster.Vote{Site: r.text(63, "site"), Yes: r.bool()})
	}
	return m
}

func (r *snapReader) key() (k signature.Key) {
	for i := range k {
		k[i] = r.byte()
	}
	return k
}

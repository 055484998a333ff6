package fsm

import (
	"maps"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// A snapshot holds the work that is left. Chores and the progress of matching come after the parameters;
// what a match or a search has found out comes with the machine, class or attempt that it is about.

func (h *search) clone() *search {
	if h == nil {
		return nil
	}
	c := *h
	c.judged, c.none = maps.Clone(h.judged), slices.Clone(h.none)
	c.turns, c.first = slices.Clone(h.turns), slices.Clone(h.first)
	return &c
}

// freezeFresh returns the freshness of classes, nil if none is fresh, which is usual.
func (s *matching) freezeFresh() map[*class]freshness {
	if len(s.fresh)+len(s.late) == 0 {
		return nil
	}
	out := make(map[*class]freshness, len(s.fresh)+len(s.late))
	for _, c := range slices.Concat(s.fresh, s.late) {
		out[c] = c.fresh
	}
	return out
}

// of returns a class's judgement, unjudged if no search is in progress.
func (h *search) of(c *class) judgement {
	if h == nil {
		return unjudged
	}
	return h.judged[c]
}

// marks packs flags into bits, the first into the lowest.
func marks(flags ...bool) (v uint64) {
	for i, f := range flags {
		if f {
			v |= 1 << i
		}
	}
	return v
}

func (f *Frozen) encodeLong(w *snapWriter) {
	w.uint(uint64(f.phase))
	if f.phase == cut {
		w.uint(f.retry)
	}
	w.bool(f.search != nil)
	if f.search != nil {
		f.search.encode(w)
	}
	w.uint(uint64(len(f.chores)))
	for _, c := range f.chores {
		w.uint(uint64(c.kind), uint64(c.site), c.limit, c.seq, uint64(c.task))
	}
}

func (h *search) encode(w *snapWriter) {
	w.uint(uint64(h.made), uint64(len(h.none)))
	w.uint(h.none...)
	w.bool(h.ordered)
	if !h.ordered {
		return
	}
	w.uint(uint64(len(h.turns)))
	for _, id := range h.turns {
		w.uint(uint64(id))
	}
	w.uint(uint64(len(h.first)))
	for _, need := range h.first {
		w.res(need)
	}
}

// readSearch reads what encode wrote; judgements come with the classes.
func (r *snapReader) readSearch(s *State) *search {
	h := &search{judged: map[*class]judgement{}, made: int(r.upTo(math.MaxInt32, "reservations made"))}
	for range r.upTo(math.MaxInt32, "heads without a machine") {
		seq := r.upTo(s.nextSeq, "head")
		n := len(h.none)
		if r.check(n == 0 || h.none[n-1] < seq, "heads out of order"); r.err != nil {
			return h
		}
		h.none = append(h.none, seq)
	}
	if h.ordered = r.bool(); !h.ordered {
		return h
	}
	for range r.upTo(MaxMembers, "sites in turn") {
		h.turns = append(h.turns, int32(r.upTo(MaxMembers-1, "site")))
	}
	for range r.upTo(MaxMembers, "needs of first heads") {
		if h.first = append(h.first, r.res()); r.err != nil {
			return h
		}
	}
	return h
}

func (r *snapReader) long(s *State) {
	if s.phase = matchPhase(r.upTo(uint64(lastMatchPhase), "phase of the match")); s.phase == cut {
		s.retry = r.uint()
	}
	if r.bool() {
		s.search = r.readSearch(s)
	}
	for range r.upTo(math.MaxInt32, "chores") {
		c := chore{kind: choreKind(r.upTo(uint64(lastChore), "chore")), site: int32(r.upTo(MaxMembers-1, "site"))}
		c.limit, c.seq = r.upTo(s.nextSeq, "job"), r.upTo(s.nextSeq, "job")
		c.task = uint32(r.upTo(command.MaxCount, "task"))
		if c.kind == choreCancel {
			r.check(c.site == 0 && !s.cancelling[c.seq], "a job is cancelled twice")
			s.cancelling[c.seq] = true
		}
		if r.err != nil {
			return
		}
		s.chores = append(s.chores, c)
	}
}

// hasChore is State.hasChore, remembered by site: here it is called for each attempt.
func (r *snapReader) hasChore(s *State, site int32) bool {
	has, ok := r.busy[site]
	if !ok {
		has = s.hasChore(site)
		r.busy[site] = has
	}
	return has
}

// rest reads whether a machine rests, whether it is tried, and whether the pass in progress has drawn it.
func (r *snapReader) rest(s *State, m *machine) {
	v := r.upTo(7, "rest")
	m.resting = v&1 != 0
	if v&4 != 0 {
		r.check(s.phase == cut, "a machine was drawn in no pass")
		m.pass = s.pass
	}
	if v&2 != 0 {
		r.check(v&4 != 0, "a machine was tried in no pass")
		s.putAside(m)
	}
}

// classMarks reads what is known of a class: bit 0 is its image, two more its freshness, the others its
// judgement.
func (r *snapReader) classMarks(s *State) uint64 {
	v := r.upTo(7|uint64(lastJudgement)<<3, "marks")
	f := freshness(v >> 1 & 3)
	r.check(f <= lastFreshness && (f == notFresh || s.phase != matched), "something is fresh after the match")
	r.check(f != isLate || s.phase == cut, "something is late for no pass")
	r.check(v>>3 == 0 || s.search != nil, "a judgement without a search")
	return v
}

func (r *snapReader) noteMarks(s *State, c *class, v uint64) {
	if f := freshness(v >> 1 & 3); f != notFresh {
		r.fresh[c] = f
	}
	if v>>3 != 0 {
		s.search.judged[c] = judgement(v >> 3)
	}
}

// freshAgain makes those classes fresh that were. Everything else that waits has been tried; otherwise no
// machine would rest.
func (r *snapReader) freshAgain(s *State) {
	for _, c := range s.active {
		s.setFresh(c, r.fresh[c])
		delete(r.fresh, c)
	}
	r.check(len(r.fresh) == 0, "nothing waits of what is fresh")
	for _, c := range s.chores {
		r.check(int(c.site) < len(s.sites), "work on no site")
	}
	if s.search != nil {
		for _, id := range s.search.turns {
			r.check(int(id) < len(s.sites), "the turn of no site")
		}
	}
}

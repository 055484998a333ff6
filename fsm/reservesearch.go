package fsm

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// search is one search for reservations. First it judges each class that waits, once; that looks at machines
// and may take several entries. Then it reserves machines for heads. Both continue with the entries that
// follow, even those with commands: a judgement may then be a few entries old, and the next search, a second
// later, judges again.
type search struct {
	judged map[*class]judgement
	made   int      // reservations
	none   []uint64 // sorted: heads for which no machine was found

	ordered bool                // all classes are judged, and turns is known
	turns   []int32             // sites not yet reached, by whose turn it was then
	first   []command.Resources // needs of the first heads of the sites before, if they do not starve
}

// judgement says what the offered machines mean to a class.
type judgement uint8

const (
	unjudged judgement = iota
	hopeless           // no machine could ever serve it
	crowded            // some could, but waiting for the federation's tasks would not free enough room on any
	servable
	lastJudgement = servable
)

// judge judges the classes of all heads, in an order that is the same at all members. It returns false if
// more are left. It judges at least one, since finding it means looking at all lanes.
func (s *holding) judge() bool {
	worked := false
	for _, x := range s.sites {
		if !x.present() || !s.hasUnjudged(x) { // so that a judged site is not sorted again with each entry
			continue
		}
		s.steps.used += uint64(len(x.lanes)) * stepTurn
		for _, l := range inTurn(x.lanes) {
			if !s.isUnjudged(l) {
				continue
			}
			if worked && s.steps.spent() {
				return false
			}
			s.search.judged[l.class] = s.judgementOf(l.class)
			worked = true
		}
	}
	return true
}

// hasUnjudged reports whether a class of a site's lanes is not yet judged. All lanes are counted, since their
// order differs between replicas.
func (s *holding) hasUnjudged(x *site) bool {
	s.steps.used += uint64(len(x.lanes)) * stepLook
	return slices.ContainsFunc(x.lanes, s.isUnjudged)
}

func (s *holding) isUnjudged(l *lane) bool { return s.search.judged[l.class] == unjudged }

// inTurn returns a site's lanes in the order in which they are to be served.
func inTurn(lanes []*lane) []*lane {
	out := slices.Clone(lanes)
	slices.SortFunc(out, compareTurns)
	return out
}

// compareTurns orders a site's lanes: order, then arrival.
func compareTurns(a, b *lane) int {
	return cmp.Or(cmp.Compare(b.top().order, a.top().order), cmp.Compare(a.seq, b.seq))
}

func (s *holding) judgementOf(c *class) judgement {
	best := hopeless
	for _, x := range s.order {
		s.steps.used += stepLook
		// Most of what fits nowhere is refused here, without looking at the machines.
		if x.state != Alive || !c.Need.FitsIn(x.most) || !c.Allows(x.name) {
			continue
		}
		for _, m := range x.machines {
			if !s.fits(c, m, m.whole) {
				continue
			}
			if best = crowded; m.held == 0 && s.fits(c, m, m.exposed) {
				return servable
			}
		}
	}
	return best
}

// isNone reports whether this search has already failed to find a machine for a head.
func (h *search) isNone(seq uint64) bool {
	_, ok := slices.BinarySearch(h.none, seq)
	return ok
}

func (h *search) addNone(seq uint64) {
	if i, ok := slices.BinarySearch(h.none, seq); !ok {
		h.none = slices.Insert(h.none, i, seq)
	}
}

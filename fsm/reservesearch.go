package fsm

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// search is one look for reservations. It first judges each class that waits, once:
// that looks at machines and may take several entries. Then it gives machines to heads.
// Both go on with the entries that follow, also beside commands: a judgement may be a
// few entries old then, and the next search, a second later, judges anew.
type search struct {
	judged map[*class]judgement
	made   int      // reservations
	none   []uint64 // sorted: heads for which no machine was found

	ordered bool                // all classes are judged, and turns is known
	turns   []int32             // sites that it has not come to, by whose turn it was then
	first   []command.Resources // what the first heads of those before need, if they do not starve
}

// judgement is what the machines on offer mean to a class.
type judgement uint8

const (
	unjudged judgement = iota
	hopeless           // no machine could ever serve it
	crowded            // none that could has room to be had by waiting for the federation's tasks
	servable
	lastJudgement = servable
)

// judge judges the classes of all heads, in an order that is the same at all members;
// false: more are left. It judges at least one, for to find it looks at all lanes.
func (s *holding) judge() bool {
	worked := false
	for _, x := range s.sites {
		if !x.present() || !s.hasUnjudged(x) { // none is put in order again with each entry
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

// hasUnjudged reports whether a class of a site's lanes is not judged yet. All are
// counted, for the lanes' order is this replica's own.
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

// compareTurns orders a site's lanes: priority, then arrival.
func compareTurns(a, b *lane) int {
	return cmp.Or(cmp.Compare(b.top().priority, a.top().priority), cmp.Compare(a.seq, b.seq))
}

func (s *holding) judgementOf(c *class) judgement {
	best := hopeless
	for _, x := range s.order {
		s.steps.used += stepLook
		if x.state != Alive || !c.Need.FitsIn(x.most) || !c.Allows(x.name) { // most of what fits nowhere needs no look at the machines
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

// isNone reports whether this search has looked for a machine for a head in vain.
func (h *search) isNone(seq uint64) bool {
	_, ok := slices.BinarySearch(h.none, seq)
	return ok
}

func (h *search) addNone(seq uint64) {
	if i, ok := slices.BinarySearch(h.none, seq); !ok {
		h.none = slices.Insert(h.none, i, seq)
	}
}

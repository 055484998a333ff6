package fsm

import (
	"slices"
	"strings"
)

// labelSet is labels as machines share them, read apart; nil is none.
type labelSet struct {
	labels Labels // key of State.labelSets
	pairs  []label
	no     uint64 // no other set of this state had it
	refs   int    // machines; at 0 the set is dropped
}

// label is one of them; they stand in the order of their keys.
type label struct{ key, value string }

// readLabels reads valid labels apart.
func readLabels(l Labels) *labelSet {
	if l == "" {
		return nil
	}
	x := &labelSet{labels: l}
	for key, value := range l.All() {
		x.pairs = append(x.pairs, label{key, value})
	}
	return x
}

// text is the labels in their one form.
func (x *labelSet) text() Labels {
	if x == nil {
		return ""
	}
	return x.labels
}

// list is all labels.
func (x *labelSet) list() []label {
	if x == nil {
		return nil
	}
	return x.pairs
}

// get returns a label's value, and whether there is one.
func (x *labelSet) get(key string) (value string, ok bool) {
	i, ok := slices.BinarySearchFunc(x.list(), key, func(l label, key string) int { return strings.Compare(l.key, key) })
	if !ok {
		return "", false
	}
	return x.pairs[i].value, true
}

// relabel gives a machine other labels.
func (s *State) relabel(m *machine, l Labels) {
	if m.labels.text() == l {
		return
	}
	if old := m.labels; old != nil {
		if old.refs--; old.refs == 0 {
			delete(s.labelSets, old.labels)
		}
	}
	m.labels = nil
	if l == "" {
		return
	}
	x := s.labelSets[l]
	if x == nil {
		x = readLabels(l)
		s.labelNo++
		x.no = s.labelNo
		s.labelSets[l] = x
	}
	x.refs++
	m.labels = x
}

// verdicts bounds how many sets of labels a class remembers: those of most
// federations. Of more, some are compared again.
const verdicts = 64

// verdict is whether machines with such labels satisfy a class's selectors.
type verdict struct {
	set *labelSet
	yes bool
}

// admits is shape.admits with a memory. Only Apply may ask it: reads never write.
func (c *class) admits(x *labelSet) bool {
	if x == nil || len(c.rules) == 0 {
		return c.shape.admits(x)
	}
	if c.verdicts == nil {
		c.verdicts = make([]verdict, verdicts)
	}
	v := &c.verdicts[x.no%verdicts]
	if v.set != x {
		*v = verdict{x, c.shape.admits(x)}
	}
	return v.yes
}

// fits is shape.fits in Apply. It counts the look, and selectors as if nothing were
// remembered: what a class remembers is of this replica.
func (s *State) fits(c *class, m *machine, room Resources) bool {
	s.steps.used += stepLook
	if !c.need.fits(room) || !m.runs.Takes(c.image) {
		return false
	}
	if len(c.rules) == 0 {
		return true
	}
	s.steps.used += uint64(len(c.rules)*stepRule + len(m.labels.list())/labelsAStep)
	return c.admits(m.labels)
}

// suits is shape.suits in Apply, and counts as fits does.
func (s *State) suits(c *class, m *machine, room Resources) bool {
	return s.fits(c, m, room) && c.allows(m.site.name)
}

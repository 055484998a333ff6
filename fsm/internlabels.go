package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// labelSet is labels as machines share them, read apart; nil is none.
type labelSet struct {
	labels command.Labels // key of State.labelSets
	pairs  command.Pairs
	no     uint64 // no other set of this state had it
	refs   int    // machines; at 0 the set is dropped
}

// text is the labels in their one form.
func (x *labelSet) text() command.Labels {
	if x == nil {
		return ""
	}
	return x.labels
}

// list is all labels.
func (x *labelSet) list() command.Pairs {
	if x == nil {
		return nil
	}
	return x.pairs
}

// relabel gives a machine other labels.
func (s *fleet) relabel(m *machine, l command.Labels) {
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
		s.labelNo++
		x = &labelSet{labels: l, pairs: l.Pairs(), no: s.labelNo}
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
	if x == nil || len(c.Rules) == 0 {
		return c.Shape.Admits(x.list())
	}
	if c.verdicts == nil {
		c.verdicts = make([]verdict, verdicts)
	}
	v := &c.verdicts[x.no%verdicts]
	if v.set != x {
		*v = verdict{x, c.Shape.Admits(x.list())}
	}
	return v.yes
}

// fits is shape.fits in Apply. It counts the look, and selectors as if nothing were
// remembered: what a class remembers is of this replica.
func (s *fleet) fits(c *class, m *machine, room command.Resources) bool {
	s.steps.used += stepLook
	if !c.Need.FitsIn(room) || !m.runs.Takes(c.Image) {
		return false
	}
	if len(c.Rules) == 0 {
		return true
	}
	s.steps.used += uint64(len(c.Rules)*stepRule + len(m.labels.list())/labelsAStep)
	return c.admits(m.labels)
}

// suits is shape.suits in Apply, and counts as fits does.
func (s *fleet) suits(c *class, m *machine, room command.Resources) bool {
	return s.fits(c, m, room) && c.Allows(m.site.name)
}

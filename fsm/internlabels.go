package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// labelSet is a set of labels that machines share, parsed; nil means none.
type labelSet struct {
	labels command.Labels // key of State.labelSets
	pairs  command.Pairs
	no     uint64 // unique among the sets that this state has had
	refs   int    // machines; at 0 the set is dropped
}

// text returns the labels as text.
func (x *labelSet) text() command.Labels {
	if x == nil {
		return ""
	}
	return x.labels
}

// list returns the labels parsed.
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

// verdicts bounds how many sets of labels a class remembers: enough for most federations. With more sets,
// some are compared again.
const verdicts = 64

// verdict records whether machines with these labels satisfy a class's selectors.
type verdict struct {
	set *labelSet
	yes bool
}

// admits is Shape.Admits with a memory. Only Apply may call it: reads never write.
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

// fits is machine.takes for Apply. It counts its steps, and those for selectors as if nothing were
// remembered, since what a class remembers differs between replicas.
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

// suits is machine.mayTake for Apply, and counts its steps as fits does.
func (s *fleet) suits(c *class, m *machine, room command.Resources) bool {
	return s.fits(c, m, room) && c.Allows(m.site.name)
}

package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// class is a shape that jobs share. Jobs of one class are alike to every machine, so matching looks at
// classes and never scans jobs.
type class struct {
	command.Shape
	key  string // in State.classes
	refs int    // jobs in the state; at 0 the class is dropped

	// The fields below are derived from what waits, for matching.
	lanes    []*lane // with waiting tasks whose owner is present; a heap while heapAt = index
	heapAt   uint64  // entry whose ranks order lanes
	waiting  uint64  // tasks in lanes
	activeAt int     // position in State.active, −1 when waiting = 0
	jobs     int     // those that wait in lanes
	// barredFrom counts the jobs waiting in lanes that are barred from a site.
	barredFrom barCounts
	verdicts   []verdict // by labelSet.no modulo their number; nil until needed
	fresh      freshness // Invariant: notFresh while waiting = 0
	freshAt    int       // position in the list that fresh names
}

// takes reports whether a machine runs such tasks and has room for one; room is m.room(), or m.whole for
// whether it will some day.
func (m *machine) takes(h *command.Shape, room command.Resources) bool {
	return h.Need.FitsIn(room) && m.runs.Takes(h.Image) && (len(h.Rules) == 0 || h.Admits(m.labels.list()))
}

// mayTake reports the same for a site where such tasks may run.
func (m *machine) mayTake(h *command.Shape, room command.Resources) bool {
	return m.takes(h, room) && h.Allows(m.site.name)
}

// shapeBytes is enough for the keys of most requirements.
const shapeBytes = 64

// findClass returns the interned class of a requirement, or nil.
func (s *fleet) findClass(h *command.Shape) *class {
	var buf [shapeBytes]byte
	return s.classes[string(h.AppendKey(buf[:0]))]
}

// holdClass interns a requirement for one more job.
func (s *fleet) holdClass(h *command.Shape) *class {
	c := s.findClass(h)
	if c == nil {
		c = &class{Shape: h.Clone(), key: string(h.AppendKey(nil)), activeAt: -1}
		s.classes[c.key] = c
	}
	c.refs++
	return c
}

// opening counts the open jobs of a site with one requirement.
type opening struct {
	class *class
	n     int // Invariant: > 0
}

// findOpening returns where a site's count of a requirement is, −1 if it has no open job with it. There
// are at most bounds.shapes, and usually the same one is asked for repeatedly.
func (x *site) findOpening(c *class) int {
	for i := range x.open {
		if x.open[i].class == c {
			return i
		}
	}
	return -1
}

// opened counts one more open job of an owner.
func (c *class) opened(x *site) {
	i := x.findOpening(c)
	if i < 0 {
		x.open = append(x.open, opening{c, 1})
		return
	}
	x.open[i].n++
	x.open[0], x.open[i] = x.open[i], x.open[0]
}

// closed counts one less open job of an owner.
func (c *class) closed(x *site) {
	i, last := x.findOpening(c), len(x.open)-1
	if x.open[i].n--; x.open[i].n == 0 {
		x.open[i], x.open[last] = x.open[last], opening{}
		x.open = x.open[:last]
	}
}

func (s *fleet) releaseClass(c *class) {
	if c.refs--; c.refs == 0 {
		delete(s.classes, c.key)
	}
}

// payload is shared by jobs with equal payloads.
type payload struct {
	data string // key of State.payloads
	refs int
}

// holdPayload interns data for one more job. The table is the runtime's map, whose hash no member can
// predict. With a hash keyed by the federation's seed, which all members know, one member could make all
// its payloads collide. Nothing iterates over the table.
func (s *fleet) holdPayload(data []byte) *payload {
	p := s.payloads[string(data)]
	if p == nil {
		p = &payload{data: string(data)}
		s.payloads[p.data] = p
	}
	p.refs++
	return p
}

// bytes returns a copy of the data, nil if there is none.
func (p *payload) bytes() []byte {
	if p.data == "" {
		return nil
	}
	return []byte(p.data)
}

func (s *fleet) releasePayload(p *payload) {
	if p.refs--; p.refs == 0 {
		delete(s.payloads, p.data)
	}
}

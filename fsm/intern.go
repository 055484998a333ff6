package fsm

import (
	"encoding/binary"
	"slices"
	"strings"
)

// shape is a requirement: what one task needs and where it may run.
type shape struct {
	need      Resources
	image     bool       // it runs in a container image
	rules     []Selector // the selectors, by key
	only, not []string   // sorted, unique; never changed
	selectors []string   // likewise
}

// shape of the job's tasks; it shares the lists.
func (j *JobSpec) shape() shape {
	return shape{need: j.Need, image: j.Image, rules: rulesOf(j.Selectors), only: j.Only, not: j.Not, selectors: j.Selectors}
}

// Allows reports whether the job may run at a site, by its sites.only and sites.not.
func (j *JobSpec) Allows(site string) bool {
	h := j.shape()
	return h.allows(site)
}

// class is a shape that jobs share. Jobs of one class are alike to every
// machine, so matching looks at classes and never scans jobs.
type class struct {
	shape
	key  string // of State.classes
	refs int    // jobs in the state; at 0 the class is dropped

	// Below: derived from what waits, for matching.
	lanes    []*lane // with waiting tasks whose owner is present; a heap while heapAt = index
	heapAt   uint64  // entry whose ranks order lanes
	waiting  uint64  // tasks in lanes
	activeAt int     // position in State.active, −1 when waiting = 0
	jobs     int     // that wait in lanes
	// The jobs that are barred from a site, of those that wait in lanes.
	barredFrom barCounts
	verdicts   []verdict // by labelSet.no modulo their number; nil until they are needed
	fresh      freshness // Invariant: notFresh while waiting = 0
	freshAt    int       // position in the list that fresh names
}

// allows reports whether such tasks may run at a site.
func (h *shape) allows(site string) bool {
	if len(h.only) > 0 {
		if _, ok := slices.BinarySearch(h.only, site); !ok {
			return false
		}
	}
	if len(h.not) > 0 {
		if _, ok := slices.BinarySearch(h.not, site); ok {
			return false
		}
	}
	return true
}

// fits reports whether a machine runs such tasks and has room for one: m.room(),
// or m.whole for some day.
func (h *shape) fits(m *machine, room Resources) bool {
	return h.need.fits(room) && m.runs.Takes(h.image) && (len(h.rules) == 0 || h.admits(m.labels))
}

// suits is fits at a site where such tasks may run.
func (h *shape) suits(m *machine, room Resources) bool {
	return h.fits(m, room) && h.allows(m.site.name)
}

// shapeBytes suffice for most requirements' encodings.
const shapeBytes = 64

// appendTo appends what names the requirement.
func (h *shape) appendTo(b []byte) []byte {
	b = binary.AppendVarint(b, h.need.MilliCPU)
	b = binary.AppendVarint(b, h.need.MemMiB)
	b = binary.AppendVarint(b, h.need.GPU)
	b = appendBool(b, h.image)
	b = binary.AppendUvarint(b, uint64(len(h.only)))
	for _, names := range [][]string{h.only, h.not} {
		for _, n := range names {
			b = append(append(b, n...), 0)
		}
	}
	for _, text := range h.selectors {
		b = append(append(b, text...), '\n') // in no name, so it is none of not
	}
	return b
}

// findClass returns the interned class of a requirement, or nil.
func (s *State) findClass(h *shape) *class {
	var buf [shapeBytes]byte
	return s.classes[string(h.appendTo(buf[:0]))]
}

// holdClass interns a requirement for one more job.
func (s *State) holdClass(h *shape) *class {
	c := s.findClass(h)
	if c == nil {
		c = &class{key: string(h.appendTo(nil)), activeAt: -1}
		c.shape = shape{need: h.need, image: h.image, only: cloneNames(h.only), not: cloneNames(h.not), selectors: cloneNames(h.selectors)}
		c.rules = rulesOf(c.selectors)
		s.classes[c.key] = c
	}
	c.refs++
	return c
}

func cloneNames(names []string) []string {
	out := slices.Clone(names)
	for i, n := range out {
		out[i] = strings.Clone(n)
	}
	return out
}

// opening is how many open jobs of a site have a requirement.
type opening struct {
	class *class
	n     int // Invariant: > 0
}

// findOpening returns where a site's count of a requirement is, −1 if it has no open job
// with it. They are at most bounds.shapes, and as a rule one is asked for again and again.
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

// closed counts one less.
func (c *class) closed(x *site) {
	i, last := x.findOpening(c), len(x.open)-1
	if x.open[i].n--; x.open[i].n == 0 {
		x.open[i], x.open[last] = x.open[last], opening{}
		x.open = x.open[:last]
	}
}

func (s *State) releaseClass(c *class) {
	if c.refs--; c.refs == 0 {
		delete(s.classes, c.key)
	}
}

// payload is what jobs with equal payloads share.
type payload struct {
	data string // key of State.payloads
	refs int
}

// holdPayload interns data for one more job. The table is one of the runtime's, whose
// hash no member can foresee; a hash by the federation's seed, which all of them know, let
// one have all its payloads collide. Nothing iterates the table.
func (s *State) holdPayload(data []byte) *payload {
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

func (s *State) releasePayload(p *payload) {
	if p.refs--; p.refs == 0 {
		delete(s.payloads, p.data)
	}
}

// mix is the finalizer of splitmix64: a bijection whose output bits each
// depend on every input bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

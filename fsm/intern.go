package fsm

import (
	"bytes"
	"encoding/binary"
	"math/bits"
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
	lanes    []*lane   // with waiting tasks whose owner is present; a heap while heapAt = index
	heapAt   uint64    // entry whose ranks order lanes
	waiting  uint64    // tasks in lanes
	activeAt int       // position in State.active, −1 when waiting = 0
	barred   int       // waiting jobs with bars, void ones and those of absent owners too
	verdicts []verdict // by labelSet.no modulo their number; nil until they are needed
	fresh    freshness // Invariant: notFresh while waiting = 0
	freshAt  int       // position in the list that fresh names
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

func (h *shape) encoded() string {
	b := make([]byte, 0, 32)
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
	return string(b)
}

// findClass returns the interned class of a requirement, or nil.
func (s *State) findClass(h shape) *class { return s.classes[h.encoded()] }

// holdClass interns a requirement for one more job.
func (s *State) holdClass(h shape) *class {
	key := h.encoded()
	c := s.classes[key]
	if c == nil {
		h.only, h.not, h.selectors = cloneNames(h.only), cloneNames(h.not), cloneNames(h.selectors)
		h.rules = rulesOf(h.selectors)
		c = &class{shape: h, key: key, activeAt: -1}
		s.classes[key] = c
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

// opened counts one more open job of an owner.
func (c *class) opened(x *site) { x.open[c]++ }

// closed counts one less.
func (c *class) closed(x *site) {
	if x.open[c]--; x.open[c] == 0 {
		delete(x.open, c)
	}
}

func (s *State) releaseClass(c *class) {
	if c.refs--; c.refs == 0 {
		delete(s.classes, c.key)
	}
}

// payload is what jobs with equal payloads share.
type payload struct {
	data []byte // never changed
	hash uint64
	refs int
	next *payload // same hash
}

// holdPayload interns data for one more job.
func (s *State) holdPayload(data []byte) *payload {
	h := hashBytes(s.seed, data)
	head := s.payloads[h]
	for p := head; p != nil; p = p.next {
		if bytes.Equal(p.data, data) {
			p.refs++
			return p
		}
	}
	p := &payload{data: slices.Clip(slices.Clone(data)), hash: h, refs: 1, next: head}
	s.payloads[h] = p
	return p
}

func (s *State) releasePayload(p *payload) {
	if p.refs--; p.refs > 0 {
		return
	}
	if head := s.payloads[p.hash]; head != p {
		for head.next != p {
			head = head.next
		}
		head.next = p.next
	} else if p.next == nil {
		delete(s.payloads, p.hash)
	} else {
		s.payloads[p.hash] = p.next
	}
}

// hashBytes is a fast keyed hash for tables; equality is always checked.
func hashBytes(key uint64, data []byte) uint64 {
	h := mix(key ^ uint64(len(data)))
	for ; len(data) >= 8; data = data[8:] {
		h = fold(h ^ binary.LittleEndian.Uint64(data))
	}
	var last [8]byte
	copy(last[:], data)
	return mix(fold(h ^ binary.LittleEndian.Uint64(last[:])))
}

func fold(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0x9e3779b97f4a7c15)
	return hi ^ lo
}

// mix is the finalizer of splitmix64: a bijection whose output bits each
// depend on every input bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

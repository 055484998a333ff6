package command

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Shape is a requirement: what one task needs and where it may run.
type Shape struct {
	Need      Resources
	Image     bool       // it runs in a container image
	Rules     []Selector // the selectors, by key
	Only, Not []string   // sites; sorted, unique; never changed
	Selectors []string   // sorted, unique; never changed
}

// Shape returns the requirement of the job's tasks; it shares the lists.
//
// REQUIRES: the job is valid.
func (j *JobSpec) Shape() Shape {
	return Shape{
		Need: j.Need, Image: j.Image, Rules: rulesOf(j.Selectors),
		Only: j.Only, Not: j.Not, Selectors: j.Selectors,
	}
}

// Allows reports whether the job may run at a site according to its sites.only and sites.not.
func (j *JobSpec) Allows(site string) bool {
	h := Shape{Only: j.Only, Not: j.Not}
	return h.Allows(site)
}

// Admits reports whether a machine's labels satisfy the job's selectors.
//
// REQUIRES: the job is valid.
func (j *JobSpec) Admits(l Labels) bool {
	if len(j.Selectors) == 0 {
		return true
	}
	h := Shape{Rules: rulesOf(j.Selectors)}
	return h.Admits(l.Pairs())
}

// Bytes returns how much the job uses of its site's quota of bytes.
func (j *JobSpec) Bytes() uint64 {
	h := Shape{Only: j.Only, Not: j.Not, Selectors: j.Selectors}
	return h.Bytes() + uint64(len(j.Payload))
}

// Allows reports whether tasks of this requirement may run at a site.
func (h *Shape) Allows(site string) bool {
	if len(h.Only) > 0 {
		if _, ok := slices.BinarySearch(h.Only, site); !ok {
			return false
		}
	}
	if len(h.Not) > 0 {
		if _, ok := slices.BinarySearch(h.Not, site); ok {
			return false
		}
	}
	return true
}

// Admits reports whether a machine with these labels satisfies every selector. It walks both once.
func (h *Shape) Admits(labels Pairs) bool {
	for i := range h.Rules {
		r := &h.Rules[i]
		for len(labels) > 0 && labels[0].Key < r.Key {
			labels = labels[1:]
		}
		value, ok := "", len(labels) > 0 && labels[0].Key == r.Key
		if ok {
			value = labels[0].Value
		}
		if !r.Accepts(value, ok) {
			return false
		}
	}
	return true
}

// Unmet counts the selectors that labels do not satisfy.
func (h *Shape) Unmet(labels Pairs) (n int) {
	for i := range h.Rules {
		r := &h.Rules[i]
		if !r.Admits(labels) {
			n++
		}
	}
	return n
}

// Lacking lists the selectors that labels do not satisfy, each with what the labels have instead.
func (h *Shape) Lacking(labels Pairs) (lacks []string) {
	for i := range h.Rules {
		r := &h.Rules[i]
		value, ok := labels.Get(r.Key)
		switch {
		case r.Accepts(value, ok):
		case r.Key == NetworkLabel:
			lacks = append(lacks, "a network for others' tasks (sandbox.network)")
		case FilesWish(r.Key) != "":
			lacks = append(lacks, FilesWish(r.Key)+" (data.lend_max, or no files travel there)")
		case ok:
			lacks = append(lacks, fmt.Sprintf("%s (it has %s=%s)", r, r.Key, value))
		default:
			lacks = append(lacks, fmt.Sprintf("%s (it has no label %s)", r, r.Key))
		}
	}
	return lacks
}

// Bytes returns how many bytes the lists of the requirement take.
func (h *Shape) Bytes() (n uint64) {
	for _, list := range [...][]string{h.Only, h.Not, h.Selectors} {
		for _, text := range list {
			n += uint64(len(text)) + 1
		}
	}
	return n
}

// AppendKey appends a key of the requirement: equal requirements have equal keys.
func (h *Shape) AppendKey(b []byte) []byte {
	b = binary.AppendVarint(b, h.Need.MilliCPU)
	b = binary.AppendVarint(b, h.Need.MemMiB)
	b = binary.AppendVarint(b, h.Need.GPU)
	b = appendBool(b, h.Image)
	b = binary.AppendUvarint(b, uint64(len(h.Only)))
	for _, names := range [][]string{h.Only, h.Not} {
		for _, n := range names {
			b = append(append(b, n...), 0)
		}
	}
	for _, text := range h.Selectors {
		b = append(append(b, text...), '\n') // no name has a newline, so this cannot be read as one of Not
	}
	return b
}

// Clone returns a copy that shares nothing with the command.
func (h *Shape) Clone() Shape {
	c := Shape{
		Need: h.Need, Image: h.Image,
		Only: cloneNames(h.Only), Not: cloneNames(h.Not), Selectors: cloneNames(h.Selectors),
	}
	c.Rules = rulesOf(c.Selectors)
	return c
}

func cloneNames(names []string) []string {
	out := slices.Clone(names)
	for i, n := range out {
		out[i] = strings.Clone(n)
	}
	return out
}

// rulesOf parses valid selectors, in the order of their keys.
func rulesOf(list []string) []Selector {
	if len(list) == 0 {
		return nil
	}
	rules := make([]Selector, 0, len(list))
	for _, text := range list {
		if r, err := ParseSelector(text); err == nil { // Validate has checked it
			rules = append(rules, r)
		}
	}
	slices.SortStableFunc(rules, func(a, b Selector) int { return strings.Compare(a.Key, b.Key) })
	return rules
}

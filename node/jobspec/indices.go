package jobspec

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// MaxIndexRanges bounds the ranges of a set of task indices.
const MaxIndexRanges = 8192

// Indices is a set of task indices, such as "3,17,40-60": those that a selection names, or those that
// number the tasks of a job. The zero value is the empty set.
type Indices struct {
	ranges []indexRange
}

// indexRange holds the indices from..to, both included.
type indexRange struct {
	from, to uint32
	before   uint32 // how many indices the earlier ranges hold
}

// ParseIndices reads indices and ranges, separated by commas, in any order. A range may be written with
// the dash that events print (–). The error says what is wrong, without repeating the text.
func ParseIndices(text string) (Indices, error) {
	parts := strings.Split(strings.ReplaceAll(text, "–", "-"), ",")
	if len(parts) > MaxIndexRanges {
		return Indices{}, fmt.Errorf("must name at most %d indices and ranges, it names %d", MaxIndexRanges, len(parts))
	}
	list := make([]indexRange, 0, len(parts))
	for _, part := range parts {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := parseIndex(first)
		if err != nil {
			return Indices{}, err
		}
		to, err := parseIndex(last)
		if err != nil {
			return Indices{}, err
		}
		if to < from {
			return Indices{}, fmt.Errorf("must have ranges that grow, such as 40-60; %d-%d does not", from, to)
		}
		list = append(list, indexRange{from: from, to: to})
	}
	slices.SortFunc(list, func(a, b indexRange) int { return int(a.from) - int(b.from) })
	var x Indices
	for _, r := range list {
		x.add(r.from, r.to)
	}
	return x, nil
}

func parseIndex(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n >= command.MaxCount {
		return 0, fmt.Errorf("must be task indices from 0 to %d and ranges of them, such as 3,17,40-60", command.MaxCount-1)
	}
	return uint32(n), nil
}

// add adds indices, none of which may be below one that the set has.
func (x *Indices) add(from, to uint32) {
	n := len(x.ranges)
	if n > 0 && from <= x.ranges[n-1].to+1 {
		x.ranges[n-1].to = max(x.ranges[n-1].to, to)
		return
	}
	x.ranges = append(x.ranges, indexRange{from: from, to: to, before: x.Len()})
}

// Add adds one index, which must not be below any that the set has.
func (x *Indices) Add(index uint32) { x.add(index, index) }

// Len returns how many indices the set has.
func (x Indices) Len() uint32 {
	if len(x.ranges) == 0 {
		return 0
	}
	last := x.ranges[len(x.ranges)-1]
	return last.before + last.to - last.from + 1
}

// Ranges returns how many ranges the set has.
func (x Indices) Ranges() int { return len(x.ranges) }

// All yields the indices of the set, in order.
func (x Indices) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, r := range x.ranges {
			for i := r.from; i <= r.to; i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// Spans yields the ranges of the set, in order: the first and the last index of each.
func (x Indices) Spans() iter.Seq2[uint32, uint32] {
	return func(yield func(first, last uint32) bool) {
		for _, r := range x.ranges {
			if !yield(r.from, r.to) {
				return
			}
		}
	}
}

// Has reports whether the set has an index.
func (x Indices) Has(index uint32) bool {
	at := x.Before(index)
	return at < x.Len() && x.At(at) == index
}

// At returns the index at a position, from 0; position < Len.
func (x Indices) At(position uint32) uint32 {
	index, _ := x.run(position)
	return index
}

// run returns the index at a position, and the length of the run of consecutive indices that starts
// there; position < Len.
func (x Indices) run(position uint32) (index, length uint32) {
	i := sort.Search(len(x.ranges), func(i int) bool { return x.ranges[i].before > position }) - 1
	r := x.ranges[i]
	index = r.from + position - r.before
	return index, r.to - index + 1
}

// Before returns how many indices of the set are below an index. If the set has the index, that is
// its position.
func (x Indices) Before(index uint32) uint32 {
	i := sort.Search(len(x.ranges), func(i int) bool { return x.ranges[i].to >= index })
	if i == len(x.ranges) {
		return x.Len()
	}
	r := x.ranges[i]
	return r.before + max(index, r.from) - r.from
}

// String returns the form that ParseIndices reads, "" for the empty set.
func (x Indices) String() string {
	var b []byte
	for i, r := range x.ranges {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(r.from), 10)
		if r.to > r.from {
			b = strconv.AppendUint(append(b, '-'), uint64(r.to), 10)
		}
	}
	return string(b)
}

// Numbering maps a job's tasks to their indices. In the state and the handlers a job has tasks 0 to
// count-1, its positions; a job without indices of its own uses the positions as indices.
type Numbering struct {
	indices Indices // empty: index = position
	count   uint32
}

// Size returns how many tasks the job has.
func (n *Numbering) Size() uint32 { return n.count }

// Index returns the index of the task at a position.
func (n *Numbering) Index(position uint32) uint32 {
	if len(n.indices.ranges) == 0 || position >= n.count {
		return position
	}
	return n.indices.At(position)
}

// Run returns the index at a position, and how many tasks from there on have consecutive indices, at
// least 1.
func (n *Numbering) Run(position uint32) (index, length uint32) {
	if len(n.indices.ranges) == 0 || position >= n.count {
		return position, max(n.count, position+1) - position
	}
	return n.indices.run(position)
}

// Position returns the position of the first task whose index is not below an index, or count if
// there is none.
func (n *Numbering) Position(index uint32) uint32 {
	if len(n.indices.ranges) == 0 {
		return min(index, n.count)
	}
	return n.indices.Before(index)
}

// PayloadIndices is how a payload begins whose job has indices of its own: they come first, so that
// they can be read without the rest.
const PayloadIndices = `{"indices":"`

// NumberingOf reads the numbering of a job's payload. A payload that no broker wrote (it does not have
// as many indices as tasks) is treated as having none.
func NumberingOf(payload []byte, count uint32) Numbering {
	plain := Numbering{count: count}
	rest, ok := strings.CutPrefix(string(payload[:min(len(payload), len(PayloadIndices))]), PayloadIndices)
	if !ok || rest != "" {
		return plain
	}
	text, _, ok := strings.Cut(string(payload[len(PayloadIndices):]), `"`)
	if !ok {
		return plain
	}
	x, err := ParseIndices(text)
	if err != nil || x.Len() != count {
		return plain
	}
	return Numbering{x, count}
}

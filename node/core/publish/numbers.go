package publish

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Numbers yields those of all jobs in groups, ascending.
func (b *Book) Numbers() iter.Seq[uint64] { return b.nums.All() }

// LastBelow returns the greatest of these below another one, 0 = of all.
func (b *Book) LastBelow(below uint64) (num uint64, ok bool) { return b.nums.LastBelow(below) }

// remove takes a group out that was sent. It is nearly always the oldest: a site that was
// alone may have hundreds of thousands, so nothing is moved then.
func (b *Book) remove(p *publication) {
	b.nums.Remove(p.jobs[0].Spec.Num, len(p.jobs))
	b.bytes -= p.bytes
	for i := range p.jobs {
		delete(b.byJob, p.jobs[i].Spec.Num)
	}
	if i := slices.Index(b.order, p); i == 0 {
		b.order[0], b.order = nil, b.order[1:]
	} else if i > 0 {
		b.order = slices.Delete(b.order, i, i+1)
	}
}

// Check returns an error if the numbers are not those of the jobs in groups. Tests ask
// after every turn.
func (b *Book) Check() error {
	if want, got := slices.Sorted(maps.Keys(b.byJob)), slices.Collect(b.nums.All()); !slices.Equal(want, got) {
		return fmt.Errorf("jobs on their way are %v, listed are %v", want, got)
	}
	bytes, held := 0, map[string]int{}
	for _, p := range b.groups() {
		sum := 0
		for i := range p.jobs {
			if b.byJob[p.jobs[i].Spec.Num] != p {
				return fmt.Errorf("job %d is found in another group", p.jobs[i].Spec.Num)
			}
			if sum += p.jobs[i].bytes(); p.jobs[i].Held {
				held[p.jobs[i].User] += p.jobs[i].bytes()
			}
		}
		if bytes += sum; sum != p.bytes {
			return fmt.Errorf("group of %d jobs has %d bytes, counted are %d", len(p.jobs), sum, p.bytes)
		}
	}
	if !maps.Equal(held, b.heldBytes) {
		return fmt.Errorf("held are %v bytes, counted are %v", held, b.heldBytes)
	}
	if bytes != b.bytes {
		return fmt.Errorf("groups have %d bytes, counted are %d", bytes, b.bytes)
	}
	return nil
}

// groups returns all groups, held ones too.
func (b *Book) groups() []*publication {
	out := slices.Clone(b.order)
	for _, l := range b.lines {
		out = append(out, *l...)
	}
	return out
}

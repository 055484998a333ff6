package publish

import (
	"fmt"
	"maps"
	"slices"
)

// Numbers returns those of all jobs in groups, ascending; they are the book's.
func (b *Book) Numbers() []uint64 { return b.nums }

// enlist adds the jobs of a group to the numbers of those on their way. A
// group's numbers are without gaps.
func (b *Book) enlist(p *publication) {
	i, _ := slices.BinarySearch(b.nums, p.jobs[0].Spec.Num)
	b.nums = slices.Insert(b.nums, i, make([]uint64, len(p.jobs))...)
	for k := range p.jobs {
		b.nums[i+k] = p.jobs[k].Spec.Num
	}
}

// delist takes them out again.
func (b *Book) delist(p *publication) {
	if i, ok := slices.BinarySearch(b.nums, p.jobs[0].Spec.Num); ok && i == 0 {
		b.nums = b.nums[len(p.jobs):] // as nearly always
	} else if ok {
		b.nums = slices.Delete(b.nums, i, i+len(p.jobs))
	}
}

// remove takes a group out that was sent. It is nearly always the oldest: a site that was
// alone may have hundreds of thousands, so nothing is moved then.
func (b *Book) remove(p *publication) {
	b.delist(p)
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
	if want := slices.Sorted(maps.Keys(b.byJob)); !slices.Equal(want, b.nums) {
		return fmt.Errorf("jobs on their way are %v, listed are %v", want, b.nums)
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

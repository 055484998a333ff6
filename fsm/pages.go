package fsm

import (
	"iter"
	"math/bits"
	"slices"
	"sort"
)

// pageSize is how many records a page holds; a page is what one write after a
// snapshot copies.
const pageSize = 64

// page holds the records whose keys share all but the low six bits.
type page[T any] struct {
	no    uint64 // key / pageSize
	epoch uint64 // may be written in place in this epoch only
	used  uint64 // bit i: items[i] is present
	items [pageSize]T
}

// pages stores records by number with copy-on-write: a copy of the page table
// is a point-in-time snapshot of all records, if the owner then raises its
// epoch. Keys need not be dense, but pages that are mostly empty cost their
// full size.
type pages[T any] struct {
	list []*page[T] // sorted by no
	n    int
}

// find returns the position of page no, or where it would be inserted.
func (p *pages[T]) find(no uint64) (int, bool) {
	last := len(p.list) - 1
	if last < 0 || no > p.list[last].no {
		return last + 1, false
	}
	first := p.list[0].no
	if no < first {
		return 0, false
	}
	// Without gaps a page stands where its number says; gaps move it left.
	guess := min(int(no-first), last)
	if p.list[guess].no == no {
		return guess, true
	}
	i := sort.Search(guess, func(i int) bool { return p.list[i].no >= no })
	return i, p.list[i].no == no
}

// get returns the record for reading only, or nil.
func (p *pages[T]) get(key uint64) *T {
	i, ok := p.find(key / pageSize)
	if !ok || p.list[i].used>>(key%pageSize)&1 == 0 {
		return nil
	}
	return &p.list[i].items[key%pageSize]
}

// mut returns the record for writing in this epoch, or nil. Pointers from get
// may be stale afterwards.
func (p *pages[T]) mut(key, epoch uint64) *T {
	i, ok := p.find(key / pageSize)
	if !ok || p.list[i].used>>(key%pageSize)&1 == 0 {
		return nil
	}
	return &p.own(i, epoch).items[key%pageSize]
}

// own makes the i-th page writable.
func (p *pages[T]) own(i int, epoch uint64) *page[T] {
	if p.list[i].epoch != epoch {
		dup := *p.list[i]
		dup.epoch = epoch
		p.list[i] = &dup
	}
	return p.list[i]
}

// put adds a zero record under a key that is absent and returns it for writing.
func (p *pages[T]) put(key, epoch uint64) *T {
	i, ok := p.find(key / pageSize)
	if !ok {
		p.list = slices.Insert(p.list, i, &page[T]{no: key / pageSize, epoch: epoch})
	}
	pg := p.own(i, epoch)
	pg.used |= 1 << (key % pageSize)
	p.n++
	return &pg.items[key%pageSize]
}

// drop removes a record that is present.
func (p *pages[T]) drop(key, epoch uint64) {
	i, ok := p.find(key / pageSize)
	if !ok {
		return
	}
	p.n--
	if p.list[i].used == 1<<(key%pageSize) {
		p.list = slices.Delete(p.list, i, i+1)
		return
	}
	pg := p.own(i, epoch)
	pg.used &^= 1 << (key % pageSize)
	var zero T
	pg.items[key%pageSize] = zero
}

// frozen returns a table that later writes in a new epoch do not change.
func (p *pages[T]) frozen() pages[T] { return pages[T]{list: slices.Clone(p.list), n: p.n} }

// all yields the records by key, for reading only.
func (p *pages[T]) all() iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		for _, pg := range p.list {
			for rest := pg.used; rest != 0; rest &= rest - 1 {
				i := uint64(bits.TrailingZeros64(rest))
				if !yield(pg.no*pageSize+i, &pg.items[i]) {
					return
				}
			}
		}
	}
}

// from yields the records with keys ≥ key, by key, for reading only.
func (p *pages[T]) from(key uint64) iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		at, _ := p.find(key / pageSize)
		for ; at < len(p.list); at++ {
			pg := p.list[at]
			rest := pg.used
			if pg.no == key/pageSize {
				rest &^= 1<<(key%pageSize) - 1
			}
			for ; rest != 0; rest &= rest - 1 {
				i := uint64(bits.TrailingZeros64(rest))
				if !yield(pg.no*pageSize+i, &pg.items[i]) {
					return
				}
			}
		}
	}
}

// below yields the records with keys < key, greatest first, for reading only.
func (p *pages[T]) below(key uint64) iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		at, ok := p.find(key / pageSize)
		if !ok {
			at--
		}
		for ; at >= 0; at-- {
			pg := p.list[at]
			rest := pg.used
			if pg.no == key/pageSize {
				rest &= 1<<(key%pageSize) - 1
			}
			for rest != 0 {
				i := uint64(bits.Len64(rest) - 1)
				rest &^= 1 << i
				if !yield(pg.no*pageSize+i, &pg.items[i]) {
					return
				}
			}
		}
	}
}

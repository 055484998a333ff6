package store

import (
	"iter"
	"math/bits"
	"slices"
	"sort"
)

// pageSize is how many records a page holds; the first write to a page after a snapshot copies it.
const pageSize = 64

// page is the records whose keys share all but the low six bits. used and epoch are read for every key,
// so they stand in the table beside the number; the records are elsewhere in memory.
type page[T any] struct {
	no    uint64       // key / pageSize
	used  uint64       // bit i: items[i] is present
	epoch uint64       // items may be written in place only in this epoch
	items *[pageSize]T // nil while none is present
}

// Pages stores records by number with copy-on-write: a copy of the page table is a point-in-time
// snapshot of all records if the owner then raises its epoch. Keys need not be dense, but a page costs
// its full size even if it is mostly empty.
type Pages[T any] struct {
	list  []page[T] // sorted by no
	n     int
	empty int // pages without records; they are removed together, since each removal moves those behind it
}

// Len returns the number of records.
func (p *Pages[T]) Len() int { return p.n }

// find returns the position of page no, or where it would be inserted. Without gaps a page is at the
// position that its number gives.
func (p *Pages[T]) find(no uint64) (int, bool) {
	if len(p.list) > 0 {
		if i := no - p.list[0].no; i < uint64(len(p.list)) && p.list[i].no == no {
			return int(i), true
		}
	}
	return p.search(no)
}

// search is find for tables where gaps have moved pages to the left.
func (p *Pages[T]) search(no uint64) (int, bool) {
	last := len(p.list) - 1
	if last < 0 || no > p.list[last].no {
		return last + 1, false
	}
	if no < p.list[0].no {
		return 0, false
	}
	i := sort.Search(last, func(i int) bool { return p.list[i].no >= no })
	return i, p.list[i].no == no
}

// Get returns the record for reading only, or nil.
func (p *Pages[T]) Get(key uint64) *T {
	i, ok := p.find(key / pageSize)
	if !ok || p.list[i].used>>(key%pageSize)&1 == 0 {
		return nil
	}
	return &p.list[i].items[key%pageSize]
}

// Mut returns the record for writing in this epoch, or nil. Pointers from Get may be stale afterwards.
func (p *Pages[T]) Mut(key, epoch uint64) *T {
	i, ok := p.find(key / pageSize)
	if !ok || p.list[i].used>>(key%pageSize)&1 == 0 {
		return nil
	}
	if p.list[i].epoch != epoch {
		p.list[i].own(epoch)
	}
	return &p.list[i].items[key%pageSize]
}

// own makes a page writable in an epoch.
func (pg *page[T]) own(epoch uint64) {
	if pg.epoch == epoch && pg.items != nil {
		return
	}
	var items [pageSize]T
	if pg.items != nil {
		items = *pg.items
	}
	pg.items, pg.epoch = &items, epoch
}

// Put adds a zero record under a key that is absent and returns it for writing.
func (p *Pages[T]) Put(key, epoch uint64) *T {
	i, ok := p.find(key / pageSize)
	switch {
	case !ok:
		p.list = slices.Insert(p.list, i, page[T]{no: key / pageSize})
	case p.list[i].used == 0:
		p.empty--
	}
	pg := &p.list[i]
	pg.own(epoch)
	pg.used |= 1 << (key % pageSize)
	p.n++
	return &pg.items[key%pageSize]
}

// Drop removes a record that is present.
func (p *Pages[T]) Drop(key, epoch uint64) {
	i, ok := p.find(key / pageSize)
	if !ok {
		return
	}
	p.n--
	pg := &p.list[i]
	if pg.used &^= 1 << (key % pageSize); pg.used == 0 {
		pg.items = nil
		p.empty++
		p.prune()
		return
	}
	pg.own(epoch)
	var zero T
	pg.items[key%pageSize] = zero
}

// prune drops empty pages: those before all others, and all of them once they are many.
func (p *Pages[T]) prune() {
	for len(p.list) > 0 && p.list[0].used == 0 {
		p.list = p.list[1:]
		p.empty--
	}
	if p.empty > len(p.list)/2+pageSize {
		p.list = slices.DeleteFunc(p.list, func(pg page[T]) bool { return pg.used == 0 })
		p.empty = 0
	}
}

// Frozen returns a table that writes in later epochs do not change.
func (p *Pages[T]) Frozen() Pages[T] {
	return Pages[T]{list: slices.Clone(p.list), n: p.n, empty: p.empty}
}

// All yields the records by key, for reading only.
func (p *Pages[T]) All() iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		for at := range p.list {
			pg := &p.list[at]
			for rest := pg.used; rest != 0; rest &= rest - 1 {
				i := uint64(bits.TrailingZeros64(rest))
				if !yield(pg.no*pageSize+i, &pg.items[i]) {
					return
				}
			}
		}
	}
}

// From yields the records with keys ≥ key, by key, for reading only.
func (p *Pages[T]) From(key uint64) iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		at, _ := p.find(key / pageSize)
		for ; at < len(p.list); at++ {
			pg := &p.list[at]
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

// Below yields the records with keys < key, greatest first, for reading only.
func (p *Pages[T]) Below(key uint64) iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		at, ok := p.find(key / pageSize)
		if !ok {
			at--
		}
		for ; at >= 0; at-- {
			pg := &p.list[at]
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

package unseal

import (
	"iter"
	"maps"

	"github.com/cloudshare/cloudshare/node/seal"
)

// recent remembers a bounded number of things by their marks, the newest ones.
type recent[T any] struct {
	most  int
	by    map[seal.Mark]T
	order []seal.Mark // oldest first; those that are dropped stand in it until they are the oldest
}

func newRecent[T any](most int) recent[T] { return recent[T]{most: most, by: map[seal.Mark]T{}} }

func (r *recent[T]) get(m seal.Mark) (T, bool) {
	v, ok := r.by[m]
	return v, ok
}

func (r *recent[T]) put(m seal.Mark, v T) {
	if _, known := r.by[m]; !known {
		for len(r.order) >= r.most {
			delete(r.by, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, m)
	}
	r.by[m] = v
}

func (r *recent[T]) drop(m seal.Mark) { delete(r.by, m) }

func (r *recent[T]) all() iter.Seq2[seal.Mark, T] { return maps.All(r.by) }

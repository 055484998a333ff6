package unseal

import (
	"iter"
	"maps"
)

// recent remembers a bounded number of things by their names, the newest ones.
type recent[K comparable, T any] struct {
	most  int
	by    map[K]T
	order []K // oldest first; those that are dropped stand in it until they are the oldest
}

func newRecent[K comparable, T any](most int) recent[K, T] {
	return recent[K, T]{most: most, by: map[K]T{}}
}

func (r *recent[K, T]) get(k K) (T, bool) {
	v, ok := r.by[k]
	return v, ok
}

func (r *recent[K, T]) put(k K, v T) {
	if _, known := r.by[k]; !known {
		for len(r.order) >= r.most {
			delete(r.by, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, k)
	}
	r.by[k] = v
}

func (r *recent[K, T]) drop(k K) { delete(r.by, k) }

func (r *recent[K, T]) all() iter.Seq2[K, T] { return maps.All(r.by) }

package store

// Fenwick is a tree of prefix sums over weights ≥ 0: Set and Find cost O(log n). It is derived data and
// never part of a snapshot.
type Fenwick struct {
	sums    []int64 // 1-based partial sums
	weights []int64
	total   int64
}

// Reset sets the tree to n weights of 0.
func (f *Fenwick) Reset(n int) {
	if cap(f.sums) >= n+1 {
		f.sums, f.weights = f.sums[:n+1], f.weights[:n]
		clear(f.sums)
		clear(f.weights)
	} else {
		f.sums, f.weights = make([]int64, n+1), make([]int64, n)
	}
	f.total = 0
}

// Total returns the sum of all weights.
func (f *Fenwick) Total() int64 { return f.total }

// Weight returns the i-th weight.
func (f *Fenwick) Weight(i int) int64 { return f.weights[i] }

// Set changes the i-th weight.
func (f *Fenwick) Set(i int, w int64) {
	d := w - f.weights[i]
	if d == 0 {
		return
	}
	f.weights[i] = w
	f.total += d
	for k := i + 1; k < len(f.sums); k += k & -k {
		f.sums[k] += d
	}
}

// Find returns the position whose weight covers r when the weights are laid end to end, and how far
// into that weight r lies.
//
// REQUIRES: 0 ≤ r < total.
func (f *Fenwick) Find(r int64) (pos int, rest int64) {
	step := 1
	for step*2 < len(f.sums) {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if next := pos + step; next < len(f.sums) && f.sums[next] <= r {
			pos = next
			r -= f.sums[next]
		}
	}
	return pos, r
}

package sim

import (
	"fmt"
	"math"
)

// Fair is what a fair federation's sites would wait: the Shapley value φ of
// v(S) = the total wait of coalition S by itself, in exact fractions.
type Fair struct {
	// Scale is the common denominator, 60 for five sites.
	Scale int64
	// Phi is φ·Scale by site, in seconds. Negative for a site that others gain
	// more from than it could ever wait less.
	Phi []int64
	// Total is v(N), in seconds.
	Total int64
}

// Shapley computes φ from v, indexed by coalition, v[0] = 0. Error: ErrTooLarge.
func Shapley(v []int64) (*Fair, error) {
	n := 0
	for 1<<n < len(v) {
		n++
	}
	f := &Fair{Scale: Denominator(n), Phi: make([]int64, n), Total: v[len(v)-1]}
	for s, value := range v {
		if value < 0 || value > math.MaxInt64/(4*f.Scale*int64(max(n, 1))) {
			return nil, fmt.Errorf("%w: coalition %b waits %d seconds", ErrTooLarge, s, value)
		}
	}
	for s := Coalition(0); int(s) < len(v); s++ {
		size := s.size()
		for o := range n {
			if !s.Has(o) { // |S|! (n−|S|−1)! / n! = 1 / (n·C(n−1, |S|))
				f.Phi[o] += f.Scale / (int64(n) * choose(n-1, size)) * (v[s|1<<o] - v[s])
			}
		}
	}
	return f, nil
}

func (c Coalition) size() (n int) {
	for ; c > 0; c &= c - 1 {
		n++
	}
	return n
}

// Denominator returns the least number that n·C(n−1, s) divides for all s.
func Denominator(n int) int64 {
	d := int64(1)
	for s := range n {
		k := int64(n) * choose(n-1, s)
		d = d / gcd(d, k) * k
	}
	return d
}

func choose(n, k int) int64 {
	c := int64(1)
	for i := range k {
		c = c * int64(n-i) / int64(i+1)
	}
	return c
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

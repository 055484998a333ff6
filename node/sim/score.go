package sim

import (
	"fmt"

	"github.com/cloudshare/cloudshare/sched"
)

// Norm measures how far waits are from fair ones.
type Norm uint8

// The norms; the study's is L1.
const (
	L1   Norm = iota // sum of distances
	L2               // sum of squares
	LMax             // the greatest distance
)

// String returns the name in reports.
func (n Norm) String() string {
	switch n {
	case L1:
		return "L1"
	case L2:
		return "L2"
	case LMax:
		return "L∞"
	}
	return fmt.Sprintf("Norm(%d)", uint8(n))
}

// Unfairness returns the distance of waits from φ, in seconds·Scale (L2: its square).
// Only those of one Fair compare.
func (f *Fair) Unfairness(waits []int64, norm Norm) sched.Int128 {
	var sum sched.Int128
	for o, w := range waits {
		d := max(f.Scale*w-f.Phi[o], f.Phi[o]-f.Scale*w)
		switch norm {
		case L1:
			sum = sum.Add(sched.Int64(d))
		case L2:
			sum = sum.Add(sched.Mul64(d, d))
		case LMax:
			if x := sched.Int64(d); x.Cmp(sum) > 0 {
				sum = x
			}
		}
	}
	return sum
}

// L1 returns the unfairness of the study, in seconds·Scale.
func (f *Fair) L1(waits []int64) int64 {
	var sum int64
	for o, w := range waits {
		sum += max(f.Scale*w-f.Phi[o], f.Phi[o]-f.Scale*w)
	}
	return sum
}

// Floor returns the least L1 that any schedule can have, in seconds·Scale: nobody
// waits less than nothing, and what a negative φ leaves over others must wait.
func (f *Fair) Floor() int64 {
	var sum int64
	for _, phi := range f.Phi {
		sum += 2 * max(0, -phi)
	}
	return sum
}

// Scores gives each algorithm a point for every algorithm that it is strictly
// fairer than: of 60, 80 and 60 the scores are 1, 0 and 1.
func Scores(unfairness []sched.Int128) []int {
	scores := make([]int, len(unfairness))
	for i, a := range unfairness {
		for _, b := range unfairness {
			if a.Cmp(b) < 0 {
				scores[i]++
			}
		}
	}
	return scores
}

// Undeserved returns what sites wait beyond their fair shares, in seconds·Scale. Of
// equal tasks it is half the L1 distance, since waits and shares have one sum; of
// others it does not count in a policy's favour that it makes a site wait longer.
func (f *Fair) Undeserved(waits []int64) int64 {
	var sum int64
	for o, w := range waits {
		sum += max(0, f.Scale*w-f.Phi[o])
	}
	return sum
}

// Package plan draws what happens in a chaos run, traffic and faults, from a
// seed and nothing else: the same seed and size give the same plan, byte for
// byte. Who leads or executes is known only when a fault comes, so a target may
// be a role.
package plan

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Size of a run.
type Size struct {
	Sites  int
	Length time.Duration // of traffic and faults
	Disks  bool          // the sites' disks can lose what was not synced
	Slow   bool          // the sites' disks can become slow
	// Hostile says that one site turns against the others now and then.
	Hostile bool
	// Far says that the sites are far apart. What is drawn does not depend on it.
	Far bool
}

// Plan of a run, each list in order of time.
type Plan struct {
	Orders []Order
	Faults []Fault
}

// New draws a plan.
func New(seed uint64, size Size) Plan {
	return Plan{
		Orders: orders(rand.New(rand.NewPCG(seed, 1)), size),
		Faults: faults(rand.New(rand.NewPCG(seed, 2)), size),
	}
}

// between draws a duration from [low, high), in steps of 10 ms so that it reads well.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	const step = 10 * time.Millisecond
	return low + time.Duration(r.Int64N(int64((high-low)/step)))*step
}

// pick draws an index by weight.
func pick(r *rand.Rand, weights ...int) int {
	total := 0
	for _, w := range weights {
		total += w
	}
	n := r.IntN(total)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return len(weights) - 1
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

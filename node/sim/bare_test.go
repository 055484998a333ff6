package sim

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/cloudshare/cloudshare/sched"
)

// naiveTurn ranks sites of a bare run by the naive definitions.
type naiveTurn struct {
	n *naive
	b *bare
}

func (t *naiveTurn) arrived(int, int64) {}

func (t *naiveTurn) began(task, _ int, _ int64) {
	if !t.b.atHome[task] {
		t.n.decisions++
		t.n.lastStart[t.n.c.Tasks[task].Site] = t.n.decisions
	}
}

func (t *naiveTurn) rank(site, _ int, now int64) sched.Rank {
	t.n.now = now
	r := t.n.rank(site)
	if r.Cmp(big.NewRat(-1<<62, 1)) == 0 {
		return sched.Rank{} // a site without a share
	}
	return sched.Rank{Num: sched.Int64(r.Num().Int64()), Den: r.Denom().Int64()}
}

// A bare run with the ranks of a policy starts every task when and where brokers
// do: equal tasks or not, with background, whatever the rules.
func TestBareIsPlay(t *testing.T) {
	for seed := range seeds(4000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := randomCase(rng, 1+rng.IntN(5))
		want, err := Play(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		turn := &naiveTurn{n: &naive{c: c, lastStart: make([]int64, len(c.Cores))}}
		turn.b = newBare(c, turn)
		turn.n.start, turn.n.site, turn.n.home = turn.b.out.Start, turn.b.out.Site, turn.b.atHome
		got := turn.b.run()
		for i := range c.Tasks {
			if got.Start[i] != want.Start[i] || got.Site[i] != want.Site[i] {
				t.Fatalf("seed %d, %s, task %d %+v: starts at %d at site %d, brokers start it at %d at %d\n%+v",
					seed, c.Params.Policy, i, c.Tasks[i], got.Start[i], got.Site[i], want.Start[i], want.Site[i], c)
			}
		}
	}
}

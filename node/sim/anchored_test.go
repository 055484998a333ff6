package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/cloudshare/cloudshare/sched"
)

// bareBalance ranks by the balance only, as SIMPL_DIRECT does.
type bareBalance struct{ *anchored }

func (t bareBalance) rank(site, _ int, now int64) sched.Rank {
	return sched.Rank{Num: sched.Int64(t.balance(site, now)), Den: 1}
}

// Lent less used is what SIMPL_DIRECT counts: with it alone every task starts when and
// where brokers start it.
func TestBalanceIsSimpl(t *testing.T) {
	for seed := range seeds(2000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		c := randomCase(rng, 1+rng.IntN(5))
		c.Params.Policy, c.Params.Running = sched.SimplDirect, sched.Partial
		want, err := Play(c)
		if err != nil {
			t.Fatal(err)
		}
		got := playBare(c, bareBalance{newAnchored(c)})
		for i := range c.Tasks {
			if got.Start[i] != want.Start[i] || got.Site[i] != want.Site[i] {
				t.Fatalf("seed %d, task %d %+v starts at %d at %d, under SIMPL_DIRECT at %d at %d\n%+v",
					seed, i, c.Tasks[i], got.Start[i], got.Site[i], want.Start[i], want.Site[i], c)
			}
		}
	}
}

// A site that waited longer than it would alone, and one that lent more, goes first.
func TestAnchoredRanks(t *testing.T) {
	c := &Case{Cores: []int64{2, 2}, Tasks: []Task{{Run: 100, Width: 1, Site: 0}, {Run: 100, Width: 1, Site: 1}}}
	a := newAnchored(c)
	a.arrived(0, 0)
	a.arrived(1, 0)
	if a.rank(0, 0, 50).Compare(a.rank(1, 1, 50)) != 0 {
		t.Error("equal sites have different ranks")
	}
	a.began(1, 0, 50)
	if a.balance(0, 60) != 10 || a.balance(1, 60) != -10 || a.balance(0, 500) != 100 || a.balance(1, 500) != -100 {
		t.Errorf("lent and used %v", a.settled)
	}
	if a.rank(0, 0, 500).Compare(a.rank(1, 1, 500)) <= 0 {
		t.Error("who lent, and waits longer, does not go first")
	}
}

package sched

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// task is the history that the sums replace.
type task struct {
	owner, executor int
	weight, r, s, e int64 // e < 0: it still runs
}

func (k task) end(now int64) int64 {
	if k.e < 0 {
		return now
	}
	return k.e
}

// account builds a site's sums from a history, as the ledger would.
func account(history []task, site int) *Account {
	a := new(Account)
	for _, k := range history {
		switch {
		case k.e < 0 && k.executor == site:
			a.GaveRun.Add(k.weight, k.s, k.r)
		case k.executor == site:
			a.Gave.Add(k.weight, k.s, k.e, k.r)
		}
		switch {
		case k.e < 0 && k.owner == site:
			a.UsedRun.Add(k.weight, k.s, k.r)
		case k.owner == site:
			a.Used.Add(k.weight, k.s, k.e, k.r)
		}
	}
	return a
}

// utilityBig is the paper's definition, written out: quantum by quantum where
// the run is short, by the closed form (doubled and halved) where it is long.
func utilityBig(name string, k task, now int64) *big.Int {
	e := k.end(now)
	w := new(big.Int).Mul(big.NewInt(k.weight), big.NewInt(e-k.s))
	if utilityOf(name) == simpl {
		return w
	}
	sum := new(big.Int)
	if e-k.s < 200 {
		for i := k.s; i < e; i++ {
			sum.Add(sum, big.NewInt(now-i))
		}
		sum.Mul(sum, big.NewInt(k.weight))
	} else {
		sum.Mul(w, big.NewInt(2*now-(k.s+e-1)))
		sum.Rsh(sum, 1)
	}
	if name == RelDirect {
		sum.Add(sum, new(big.Int).Mul(w, big.NewInt(k.r)))
	}
	return sum
}

// standingBig is Standing from the history, by brute force.
func standingBig(name string, mode Mode, history []task, site int, now int64) (gave, used *big.Int) {
	gave, used = new(big.Int), new(big.Int)
	for _, k := range history {
		if k.e < 0 && mode == Completed {
			continue
		}
		u := utilityBig(name, k, now)
		if k.executor == site {
			gave.Add(gave, u)
		}
		if k.owner == site {
			used.Add(used, u)
		}
	}
	return gave, used
}

const sites = 4

// drawHistory draws tasks of all sites up to a moment now, which it returns.
func drawHistory(t *rapid.T) ([]task, int64) {
	longest := rapid.SampledFrom([]int64{40, 1 << 20, MaxNow}).Draw(t, "longest")
	now := rapid.Int64Range(0, longest).Draw(t, "now")
	site := rapid.IntRange(0, sites-1)
	history := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) task {
		k := task{owner: site.Draw(t, "owner"), executor: site.Draw(t, "executor"), e: -1}
		k.weight = rapid.Int64Range(0, MaxWeight/100).Draw(t, "weight")
		k.s = rapid.Int64Range(0, now).Draw(t, "s")
		k.r = rapid.Int64Range(0, k.s).Draw(t, "r")
		if rapid.Bool().Draw(t, "ended") {
			k.e = rapid.Int64Range(k.s, now).Draw(t, "e")
		}
		return k
	}), 0, 20).Draw(t, "history")
	return history, now
}

func TestUtilityGoldens(t *testing.T) {
	ended := []task{{owner: 0, executor: 1, weight: 2, r: 3, s: 4, e: 7}}
	running := []task{{owner: 0, executor: 1, weight: 1, r: 3, s: 4, e: -1}}
	for _, c := range []struct {
		policy  string
		mode    Mode
		history []task
		now     int64
		want    string
	}{
		{OrigDirect, Partial, ended, 10, "30"},
		{RelDirect, Partial, ended, 10, "48"},
		{SimplDirect, Partial, ended, 10, "6"},
		{OrigDirect, Completed, ended, 10, "30"},
		{OrigDirect, Partial, running, 6, "3"},
		{RelDirect, Partial, running, 6, "9"},
		{SimplDirect, Partial, running, 6, "2"},
		{OrigDirect, Completed, running, 6, "0"},
		{FairShare, Partial, ended, 10, "6"},
		{RoundRobin, Partial, running, 6, "2"},
	} {
		_, used, _ := Standing(c.policy, c.mode, account(c.history, 0), c.now)
		gave, _, _ := Standing(c.policy, c.mode, account(c.history, 1), c.now)
		if used.String() != c.want || gave != used {
			t.Errorf("%s %s at %d: used %v, gave %v, want %s of both", c.policy, c.mode, c.now, used, gave, c.want)
		}
	}
}

func TestStandingEqualsHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history, now := drawHistory(t)
		for _, name := range Names() {
			for _, mode := range []Mode{Partial, Completed} {
				total := new(big.Int)
				for site := range sites {
					c, u, p := Standing(name, mode, account(history, site), now)
					gave, used := standingBig(name, mode, history, site, now)
					mustEqual(t, c, gave, name+" contribution")
					mustEqual(t, u, used, name+" utility")
					mustEqual(t, p, new(big.Int).Sub(gave, used), name+" priority")
					total.Add(total, toBig(p))
				}
				if total.Sign() != 0 {
					t.Fatalf("%s %s: priorities sum to %v, want 0", name, mode, total)
				}
			}
		}
	})
}

// TestRankOrdersLikeHistory compares each pair of sites by brute force.
func TestRankOrdersLikeHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history, now := drawHistory(t)
		shares := rapid.SliceOfN(rapid.Int64Range(0, 3), sites, sites).Draw(t, "shares")
		accounts := make([]*Account, sites)
		for i := range accounts {
			accounts[i] = account(history, i)
			accounts[i].Share = shares[i]
		}
		for _, mode := range []Mode{Partial, Completed} {
			for _, name := range []string{OrigDirect, RelDirect, SimplDirect, FairShare} {
				p := mustNew(t, name, mode)
				for i := range sites {
					for j := range sites {
						got := p.Rank(accounts[i], now).Compare(p.Rank(accounts[j], now))
						want := compareBig(rankBig(name, mode, history, i, shares[i], now),
							rankBig(name, mode, history, j, shares[j], now))
						if got != want {
							t.Fatalf("%s %s: site %d against %d: %d, want %d", name, mode, i, j, got, want)
						}
					}
				}
			}
		}
	})
}

// rankBig gives the undoubled place of a site from its history.
func rankBig(name string, mode Mode, history []task, site int, share, now int64) Rank {
	gave, used := standingBig(name, mode, history, site, now)
	if name == FairShare {
		return Rank{Num: fromBig(used.Neg(used)), Den: share}
	}
	return Rank{Num: fromBig(gave.Sub(gave, used)), Den: 1}
}

func fromBig(v *big.Int) Int128 {
	v = new(big.Int).Mod(v, two128)
	return Int128{
		Hi: int64(new(big.Int).Rsh(v, 64).Uint64()),
		Lo: new(big.Int).Mod(v, new(big.Int).Lsh(big.NewInt(1), 64)).Uint64(),
	}
}

func mustNew(t rapid.TB, name string, mode Mode) Policy {
	t.Helper()
	p, err := New(name, mode)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEndingIsContinuous: turning a running task into an ended one at now
// moves no standing in Partial mode, and what was added can be taken back.
func TestEndingIsContinuous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history, now := drawHistory(t)
		a := account(history, 0)
		before := *a
		for _, name := range Names() {
			c1, u1, _ := Standing(name, Partial, a, now)
			for _, k := range history {
				if k.e < 0 && k.executor == 0 {
					a.GaveRun.Sub(k.weight, k.s, k.r)
					a.Gave.Add(k.weight, k.s, now, k.r)
				}
			}
			c2, u2, _ := Standing(name, Partial, a, now)
			if c1 != c2 || u1 != u2 || !a.GaveRun.IsZero() {
				t.Fatalf("%s: ending moved (%v, %v) to (%v, %v)", name, c1, u1, c2, u2)
			}
			for _, k := range history {
				if k.e < 0 && k.executor == 0 {
					a.Gave.Sub(k.weight, k.s, now, k.r)
					a.GaveRun.Add(k.weight, k.s, k.r)
				}
			}
			if *a != before {
				t.Fatalf("Sub does not undo Add: %+v, want %+v", *a, before)
			}
		}
	})
}

// TestExactAtTheBound puts the whole proven weight on one task over the whole
// proven time, where every formula is at its greatest.
func TestExactAtTheBound(t *testing.T) {
	for _, r := range []int64{0, MaxNow / 2} {
		for _, k := range []task{
			{owner: 0, executor: 1, weight: MaxWeight, r: r, s: r, e: MaxNow},
			{owner: 0, executor: 1, weight: MaxWeight, r: r, s: r, e: -1},
		} {
			history := []task{k}
			for _, name := range Names() {
				gave, used := standingBig(name, Partial, history, 0, MaxNow)
				c, u, p := Standing(name, Partial, account(history, 0), MaxNow)
				mustEqual(t, c, gave, name+" contribution")
				mustEqual(t, u, used, name+" utility")
				mustEqual(t, p, new(big.Int).Sub(gave, used), name+" priority")
			}
			rank := mustNew(t, RelDirect, Partial).Rank(account(history, 1), MaxNow)
			_, used := standingBig(RelDirect, Partial, history, 0, MaxNow)
			mustEqual(t, rank.Num, used.Lsh(used, 1), "doubled rank")
		}
	}
	// The proof's own figure: twice the greatest utility stays below 2¹²⁷.
	most := new(big.Int).Mul(big.NewInt(2*MaxWeight), big.NewInt(MaxNow))
	most.Mul(most, big.NewInt(MaxNow+1))
	if most.BitLen() > 127 {
		t.Fatalf("2·W·T² takes %d bits, want at most 127", most.BitLen())
	}
}

func TestRoundRobinOrder(t *testing.T) {
	p := mustNew(t, RoundRobin, Partial)
	rank := func(last uint64) Rank { return p.Rank(&Account{LastStart: last}, 100) }
	for _, c := range []struct {
		above, below uint64
	}{{0, 1}, {1, 2}, {0, 1<<64 - 1}, {1<<63 - 1, 1 << 63}} {
		if rank(c.above).Compare(rank(c.below)) != 1 {
			t.Errorf("latest start %d does not rank above %d", c.above, c.below)
		}
	}
	if rank(5).Compare(rank(5)) != 0 {
		t.Error("equal latest starts do not tie")
	}
}

func TestNewRefusesUnknown(t *testing.T) {
	_, err := New("LOTTERY", Partial)
	if !errors.Is(err, ErrUnknownPolicy) {
		t.Fatalf("New(LOTTERY) = %v, want ErrUnknownPolicy", err)
	}
	for _, name := range Names() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not list %s", err, name)
		}
		if _, err := New(name, 2); !errors.Is(err, ErrUnknownMode) {
			t.Errorf("New(%s, 2) = %v, want ErrUnknownMode", name, err)
		}
	}
}

func TestModeText(t *testing.T) {
	for _, m := range []Mode{Partial, Completed} {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("ParseMode(%q) = %v, %v", m, got, err)
		}
	}
	if _, err := ParseMode("sometimes"); !errors.Is(err, ErrUnknownMode) {
		t.Errorf("ParseMode(sometimes) = %v, want ErrUnknownMode", err)
	}
}

func TestRankAllocatesNothing(t *testing.T) {
	a := account([]task{{weight: 5, s: 1, e: 9}, {weight: 7, s: 2, e: -1}}, 0)
	a.Share = 4
	for _, name := range Names() {
		p := mustNew(t, name, Partial)
		best := p.Rank(a, 10)
		if n := testing.AllocsPerRun(100, func() {
			if r := p.Rank(a, 11); r.Compare(best) > 0 {
				best = r
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a rank, want 0", name, n)
		}
	}
}

// BenchmarkBestOf1000 is one decision among 1000 waiting sites.
func BenchmarkBestOf1000(b *testing.B) {
	accounts := make([]Account, 1000)
	for i := range accounts {
		v := int64(i)
		accounts[i].Gave.Add(1000+v, v, 1000+2*v, v)
		accounts[i].Used.Add(2000-v, v, 1500+v, v)
		accounts[i].GaveRun.Add(3000, 4000+v, v)
		accounts[i].UsedRun.Add(3000, 5000-v, v)
		accounts[i].Share, accounts[i].LastStart = 1000+v%7, uint64(v)
	}
	for _, name := range Names() {
		p := mustNew(b, name, Partial)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				best := p.Rank(&accounts[0], 10_000)
				for i := 1; i < len(accounts); i++ {
					if r := p.Rank(&accounts[i], 10_000); r.Compare(best) > 0 {
						best = r
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/site")
		})
	}
}

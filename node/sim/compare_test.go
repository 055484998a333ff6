package sim

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/test/raced"
)

// randomCase draws a small case: equal unit tasks, or tasks of any width and
// length, with background.
func randomCase(rng *rand.Rand, sites int) *Case {
	c := &Case{Params: Params(sched.Names()[rng.IntN(len(sched.Names()))]), Seed: rng.Uint64(), Home: Home(rng.IntN(3))}
	c.Params.Running = sched.Mode(rng.IntN(2))
	c.Params.FixedOrder, c.WholeShare = rng.IntN(4) == 0, rng.IntN(3) == 0
	for range sites {
		c.Cores = append(c.Cores, 1+rng.Int64N(4))
	}
	unit, wide := 1+rng.Int64N(6), rng.IntN(3) == 0
	horizon, bags := 1+rng.Int64N(25), rng.IntN(2) == 0
	for i := range 1 + rng.IntN(25) {
		t := Task{
			Release: rng.Int64N(horizon), Run: unit, Width: 1, Site: rng.IntN(sites), Job: int64(rng.IntN(8)),
			Index: int32(i),
		}
		t.Background = rng.IntN(4) == 0
		if wide {
			widest := slices.Max(c.Cores)
			if t.Background {
				widest = c.Cores[t.Site]
			}
			t.Run, t.Width = 1+rng.Int64N(9), 1+rng.Int64N(widest)
		}
		if bags && i > 0 && rng.IntN(4) > 0 { // another one of its job
			t = c.Tasks[i-1]
			t.Index = int32(i)
		}
		c.Tasks = append(c.Tasks, t)
	}
	slices.SortFunc(c.Tasks, func(a, b Task) int { return compareTasks(&a, &b) })
	return c
}

// seeds is how many of so many seeds are played: a tenth under the race detector.
func seeds(all uint64) uint64 {
	if raced.Enabled {
		return all / 10
	}
	return all
}

// The product's code and the naive one start every task at the same second, at
// the same site.
func TestPlayIsNaive(t *testing.T) {
	for seed := range seeds(6000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := randomCase(rng, 1+rng.IntN(5))
		out, err := Play(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := naivePlay(c)
		for i := range c.Tasks {
			if out.Start[i] != want.start[i] || out.Site[i] != want.site[i] {
				t.Fatalf("seed %d, %s, task %d %+v: starts at %d at site %d, naively at %d at %d\n%+v\n%v %v\n%v %v",
					seed, c.Params.Policy, i, c.Tasks[i], out.Start[i], out.Site[i], want.start[i], want.site[i], c,
					out.Start, out.Site, want.start, want.site)
			}
		}
	}
}

// unitCase draws a case for which the theorem of theory.md §5 holds.
func unitCase(rng *rand.Rand, sites int) *Case {
	for {
		c := randomCase(rng, sites)
		if _, err := TotalWait(c); err == nil {
			c.Params.Running = sched.Partial
			return c
		}
	}
}

func naiveTotal(c *Case) (sum int64) {
	for _, w := range naiveWaits(c) {
		sum += w
	}
	return sum
}

func naiveWaits(c *Case) []int64 {
	n := naivePlay(c)
	waits := make([]int64, len(c.Cores))
	for i, t := range c.Tasks {
		if !t.Background {
			waits[t.Site] += n.start[i] - t.Release
		}
	}
	return waits
}

// Coalitions, φ, unfairness by every norm and scores are the naive ones to the last
// integer: of equal tasks counted, of others played.
func TestEvaluationIsNaive(t *testing.T) {
	for seed := range seeds(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		sites := 1 + rng.IntN(5)
		c := randomCase(rng, sites)
		v := make([]int64, 1<<sites)
		for s := Coalition(1); s <= Grand(sites); s++ {
			sub := playable(c, s)
			got, err := TotalWait(sub)
			if errors.Is(err, ErrUnequal) {
				var out *Outcome
				if out, err = Play(sub); err == nil {
					got = Sum(out.Waits(sub))
				}
			}
			if err != nil {
				t.Fatalf("seed %d, coalition %b: %v", seed, s, err)
			}
			if want := naiveTotal(sub); got != want {
				t.Fatalf("seed %d: coalition %b waits %d, naively %d", seed, s, got, want)
			}
			v[s] = got
		}
		checkEvaluation(t, seed, c, v)
	}
}

// playable is the case of a coalition without what is too wide for all of it.
func playable(c *Case, s Coalition) *Case {
	sub := c.Of(s)
	widest := slices.Max(sub.Cores)
	sub.Tasks = slices.DeleteFunc(sub.Tasks, func(t Task) bool { return t.Width > widest })
	return sub
}

func checkEvaluation(t *testing.T, seed uint64, c *Case, v []int64) {
	t.Helper()
	fair, err := Shapley(v)
	if err != nil {
		t.Fatal(err)
	}
	phi := naiveShapley(len(c.Cores), func(members []int) int64 {
		s := 0
		for _, o := range members {
			s |= 1 << o
		}
		return v[s]
	})
	for o := range phi {
		if big.NewRat(fair.Phi[o], fair.Scale).Cmp(phi[o]) != 0 {
			t.Fatalf("seed %d: φ of site %d is %d/%d, naively %s", seed, o, fair.Phi[o], fair.Scale, phi[o])
		}
	}
	unfair, naively := map[Norm][]sched.Int128{}, map[Norm][]*big.Rat{}
	for _, policy := range sched.Names() {
		c.Params.Policy = policy
		waits := naiveWaits(c)
		out, err := Play(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Waits(c); !slices.Equal(got, waits) {
			t.Fatalf("seed %d, %s: waits %v, naively %v", seed, policy, got, waits)
		}
		for norm, want := range naiveDistances(waits, phi) {
			got := fair.Unfairness(waits, norm)
			unfair[norm], naively[norm] = append(unfair[norm], got), append(naively[norm], want)
			if scaled := new(big.Rat).Mul(want, scaleOf(fair, norm)); scaled.RatString() != got.String() {
				t.Fatalf("seed %d, %s, %s: unfairness %s, naively %s", seed, policy, norm, got, scaled)
			}
		}
		if got := fair.L1(waits); unfair[L1][len(unfair[L1])-1] != sched.Int64(got) || Sum(waits) == fair.Total &&
			got < fair.Floor() {
			t.Fatalf("seed %d, %s: L1 %d, floor %d", seed, policy, got, fair.Floor())
		}
	}
	for norm := range unfair {
		for i, score := range Scores(unfair[norm]) {
			want := 0
			for k := range naively[norm] {
				if naively[norm][i].Cmp(naively[norm][k]) < 0 {
					want++
				}
			}
			if score != want {
				t.Fatalf("seed %d, %s: %s scores %d, naively %d", seed, norm, sched.Names()[i], score, want)
			}
		}
	}
}

// scaleOf is what the norm's integers are multiples of.
func scaleOf(fair *Fair, norm Norm) *big.Rat {
	scale := big.NewRat(fair.Scale, 1)
	if norm == L2 {
		scale.Mul(scale, scale)
	}
	return scale
}

// naiveDistances are the sum, the sum of squares and the greatest of the
// differences.
func naiveDistances(waits []int64, phi []*big.Rat) map[Norm]*big.Rat {
	sum, squares, most := new(big.Rat), new(big.Rat), new(big.Rat)
	for o, w := range waits {
		d := new(big.Rat).Sub(big.NewRat(w, 1), phi[o])
		d.Abs(d)
		sum.Add(sum, d)
		squares.Add(squares, new(big.Rat).Mul(d, d))
		if d.Cmp(most) > 0 {
			most.Set(d)
		}
	}
	return map[Norm]*big.Rat{L1: sum, L2: squares, LMax: most}
}

// The floor is the least distance that any waits have whose sum is v(N).
func TestFloorIsTheLeast(t *testing.T) {
	const most = 6
	for a := int64(-most); a <= most; a++ {
		for b := int64(-most); b <= most; b++ {
			for c := max(-most, -a-b); c <= most; c++ {
				fair := &Fair{Scale: 1, Phi: []int64{a, b, c}, Total: a + b + c}
				least := int64(math.MaxInt64)
				for x := range fair.Total + 1 {
					for y := range fair.Total - x + 1 {
						least = min(least, fair.L1([]int64{x, y, fair.Total - x - y}))
					}
				}
				if got := fair.Floor(); got != least {
					t.Fatalf("φ %v: floor %d, the least of all waits is %d", fair.Phi, got, least)
				}
			}
		}
	}
}

// The theorem: with equal tasks, every policy's waits have the same sum, and it
// is the counted one.
func TestTotalWaitIsEveryPolicys(t *testing.T) {
	for seed := range seeds(500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := unitCase(rng, 1+rng.IntN(5))
		want, err := TotalWait(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, c.Params.Policy = range sched.Names() {
			out, err := Play(c)
			if err != nil {
				t.Fatal(err)
			}
			var sum int64
			for _, w := range out.Waits(c) {
				sum += w
			}
			if sum != want {
				t.Fatalf("seed %d: %s waits %d, counted %d", seed, c.Params.Policy, sum, want)
			}
		}
	}
}

func TestScoresOfThePaper(t *testing.T) {
	if got := Scores([]sched.Int128{sched.Int64(60), sched.Int64(80), sched.Int64(60)}); !slices.Equal(got,
		[]int{1, 0, 1}) {
		t.Errorf("60, 80, 60 score %v", got)
	}
	if d := Denominator(5); d != 60 {
		t.Errorf("five sites have the denominator %d", d)
	}
}

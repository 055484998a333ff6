package sched

// Bounds under which every sum and rank is exact (DESIGN.md, "Overflow"). The
// owner of the accounts keeps to them; nothing here checks them.
const (
	// MaxNow is the greatest log time: 10 years of milliseconds, in quanta.
	MaxNow = 10 * 366 * 24 * 3600 * 1000
	// MaxWeight bounds the weights of all tasks that run at one moment. The
	// proof holds up to 8.5e14.
	MaxWeight = 100_000_000_000_000
)

// Account is one site's standing: everything a policy may look at.
type Account struct {
	// Gave sums tasks executed on the site's machines, its own included; Used
	// sums the site's own tasks, wherever they ran. Ended tasks only.
	Gave, Used Sums
	// GaveRun and UsedRun are the same for tasks that run now.
	GaveRun, UsedRun RunSums
	// Share is what the site contributes now, in milli-cores; for FAIRSHARE.
	// Invariant: Share ≥ 0.
	Share int64
	// Unseen is the part of Used.A that rests on the site's own word alone, and that
	// FAIRSHARE leaves out. Invariant: 0 ≤ Unseen ≤ Used.A.
	Unseen Int128
	// LastStart is the decision number of the site's latest start, 0 = never;
	// for ROUND_ROBIN.
	LastStart uint64
	// Projection is for the policies by projected waits; zero under others.
	Projection Projection
}

// Sums replaces the history of ended tasks. A task of weight w (per quantum)
// that was released at r and ran on [s, e) adds
//
//	A += w(e−s)    B += w(e−s)(s+e−1)    R += w(e−s)r
//
// so that at every later time T its 2ψ is 2A·T − B, its 2ψ′ is 2ψ + 2R and its
// ψ″ is A.
type Sums struct{ A, B, R Int128 }

// Add charges one ended task. weight is per quantum, not multiplied by the
// run; s, e and r are quanta since genesis.
//
// REQUIRES: 0 ≤ r ≤ s ≤ e ≤ now, weight ≥ 0.
func (t *Sums) Add(weight, s, e, r int64) { t.Plus(sumsOf(weight, s, e, r)) }

// Sub takes back what Add with the same arguments charged.
func (t *Sums) Sub(weight, s, e, r int64) { t.Minus(sumsOf(weight, s, e, r)) }

// Plus adds other's tasks.
func (t *Sums) Plus(other Sums) {
	t.A, t.B, t.R = t.A.Add(other.A), t.B.Add(other.B), t.R.Add(other.R)
}

// Minus takes other's tasks away.
func (t *Sums) Minus(other Sums) {
	t.A, t.B, t.R = t.A.Sub(other.A), t.B.Sub(other.B), t.R.Sub(other.R)
}

// IsZero reports whether nothing is charged.
func (t *Sums) IsZero() bool { return *t == Sums{} }

func sumsOf(weight, s, e, r int64) Sums {
	a := Mul64(weight, e-s)
	return Sums{A: a, B: a.MulInt64(s + e - 1), R: a.MulInt64(r)}
}

// RunSums replaces the list of tasks that run now: with w a task's weight, s
// its start and r its release,
//
//	N = Σw    S = Σw·s    S2 = Σw·s²    R = Σw·r    RS = Σw·r·s
type RunSums struct{ N, S, S2, R, RS Int128 }

// Add counts a task that began to run.
//
// REQUIRES: 0 ≤ r ≤ s, weight ≥ 0, and s ≤ now whenever a rank is asked for.
func (t *RunSums) Add(weight, s, r int64) {
	o := runSumsOf(weight, s, r)
	t.N, t.S, t.S2 = t.N.Add(o.N), t.S.Add(o.S), t.S2.Add(o.S2)
	t.R, t.RS = t.R.Add(o.R), t.RS.Add(o.RS)
}

// Sub takes a task away that Add counted with the same arguments.
func (t *RunSums) Sub(weight, s, r int64) {
	o := runSumsOf(weight, s, r)
	t.N, t.S, t.S2 = t.N.Sub(o.N), t.S.Sub(o.S), t.S2.Sub(o.S2)
	t.R, t.RS = t.R.Sub(o.R), t.RS.Sub(o.RS)
}

// IsZero reports whether nothing runs.
func (t *RunSums) IsZero() bool { return *t == RunSums{} }

func runSumsOf(weight, s, r int64) RunSums {
	ws, wr := Mul64(weight, s), Mul64(weight, r)
	return RunSums{N: Int64(weight), S: ws, S2: ws.MulInt64(s), R: wr, RS: wr.MulInt64(s)}
}

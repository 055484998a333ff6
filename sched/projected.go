package sched

// Names of the policies by projected waits: not the paper's, derived for this
// project. They serve the site whose projected wait exceeds its fair share of
// all waiting most, and differ in what share is fair.
const (
	Alone   = "ALONE"   // what it would wait if it were alone
	CE      = "CE"      // the mean of what it adds to nobody and to all others
	Shapley = "SHAPLEY" // its mean contribution over all orders of joining
)

// Limits of the sites under CE and SHAPLEY, which keep 2N and 2ᴺ virtual queues.
const (
	MaxShapley = 12
	MaxCE      = 256
)

var _ Policy = projected{}

// Projected returns the policies by projected waits. Their accounts need virtual
// queues: see Coalitions.
func Projected() []string { return []string{Alone, CE, Shapley} }

// IsProjected reports whether a policy is one of Projected.
func IsProjected(name string) bool { return name == Alone || name == CE || name == Shapley }

// Effective returns the policy that counts with so many sites: SHAPLEY gives way to
// CE and CE to ALONE above their limits. Others are their own.
func Effective(name string, sites int) string {
	if name == Shapley && sites > MaxShapley {
		name = CE
	}
	if name == CE && sites > MaxCE {
		name = Alone
	}
	return name
}

// MaxSites returns how many sites a policy can be chosen for, 0 = any number.
func MaxSites(name string) int {
	switch name {
	case Shapley:
		return MaxShapley
	case CE:
		return MaxCE
	}
	return 0
}

// Waits is a site's waiting, in units (cores) and quanta.
type Waits struct {
	// Started is Σ(s−r) over the units that started since the policy began.
	Started Int128
	// Units wait now; Released is the sum of their release times.
	Units    int64
	Released Int128
}

// Wait adds n units that wait since r; a negative n takes them out.
func (w *Waits) Wait(n, r int64) {
	w.Units += n
	w.Released = w.Released.Add(Mul64(n, r))
}

// Start has n of the waiting units, released at r, start now.
func (w *Waits) Start(n, r, now int64) {
	w.Wait(-n, r)
	w.Started = w.Started.Add(Mul64(n, now-r))
}

// At returns what was waited until a time.
func (w *Waits) At(now int64) Int128 {
	return w.Started.Add(Mul64(w.Units, now)).Sub(w.Released)
}

// Projection is a site's place in the policies by projected waits.
type Projection struct {
	Waits
	// Fair is Scale times its fair share of all waiting: Coalitions.Fair.
	Fair  Int128
	Scale int64 // ≥ 1
	// Ahead is what all that wait in the federation will go on waiting, about, and
	// Queued are their units, over all sites: each waits Ahead/Queued more.
	// Both are the same for all sites, and taken once an entry.
	Ahead  Int128
	Queued int64
}

// Excess is Scale·Queued times what the site has waited and will wait, about,
// beyond its fair share: Queued·(Scale·W − Fair) + Scale·Units·Ahead.
//
// It is exact: W and Ahead are at most MaxWait = 2⁶⁷, |Fair| ≤ Scale·MaxWait,
// Scale ≤ lcm(1…12) = 27720 and Units ≤ Queued ≤ MaxUnits = 10¹³, so its size is
// at most 3·10¹³·27720·2⁶⁷ < 2¹²⁷ (TestExcessIsInRange).
func (p *Projection) Excess(now int64) Int128 {
	queued := min(max(p.Queued, 1), MaxUnits)
	units := min(p.Units, queued)
	w := clamped(p.At(now)).MulInt64(p.Scale)
	ahead := clamped(p.Ahead).MulInt64(p.Scale)
	return w.Sub(p.Fair).MulInt64(queued).Add(ahead.MulInt64(units))
}

// Excess turns a rank by projected waits back into cores·quanta, rounded towards 0:
// what the site waits beyond its fair share.
func Excess(r Rank, p *Projection) Int128 {
	by := p.Scale * min(max(p.Queued, 1), MaxUnits)
	if r.Num.Sign() < 0 {
		return r.Num.Neg().Div(by).Neg()
	}
	return r.Num.Div(by)
}

// projected is the policies ALONE, CE and SHAPLEY: Fair makes the difference.
type projected struct{}

// Rank implements Policy: the excess over 1, up to a positive factor that is the
// same for all sites.
func (projected) Rank(a *Account, now int64) Rank {
	return Rank{Num: a.Projection.Excess(now), Den: 1}
}

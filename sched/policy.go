package sched

var (
	_ Policy = direct{}
	_ Policy = fairShare{}
	_ Policy = roundRobin{}
)

// utility is one of the paper's three.
type utility uint8

const (
	simpl utility = iota // ψ″
	orig                 // ψ
	rel                  // ψ′
)

// utilityOf returns the utility of a policy's standings.
func utilityOf(name string) utility {
	switch name {
	case OrigDirect:
		return orig
	case RelDirect:
		return rel
	}
	return simpl
}

// doubled returns twice the utility at now of the tasks that ended and, if the
// mode is Partial, of those that run: ψ and ψ′ hold halves, their doubles are
// whole (theory: 2ψ = 2A·T − B).
func (u utility) doubled(ended *Sums, running *RunSums, mode Mode, now int64) Int128 {
	var sum Int128
	switch u {
	case simpl:
		sum = ended.A.Double()
	case orig, rel:
		sum = ended.A.Double().MulInt64(now).Sub(ended.B)
		if u == rel {
			sum = sum.Add(ended.R.Double())
		}
	}
	if mode == Completed {
		return sum
	}
	return sum.Add(u.runningDoubled(running, now))
}

// runningDoubled returns twice the utility of running tasks. With a = T − s:
// ψ″ = w·a, 2ψ = w·a(a+1), 2ψ′ = 2ψ + 2w·a·r.
func (u utility) runningDoubled(t *RunSums, now int64) Int128 {
	work := t.N.MulInt64(now).Sub(t.S) // Σw(T−s)
	if u == simpl {
		return work.Double()
	}
	// Σw(T−s)² = T(N·T − S) − (S·T − S2)
	square := work.MulInt64(now).Sub(t.S.MulInt64(now).Sub(t.S2))
	sum := square.Add(work)
	if u == rel {
		sum = sum.Add(t.R.MulInt64(now).Sub(t.RS).Double())
	}
	return sum
}

// direct is DirectContr: the greatest contribution less utility goes first.
type direct struct {
	utility utility
	mode    Mode
}

// Rank implements Policy: 2·P over 1.
func (p direct) Rank(a *Account, now int64) Rank {
	gave := p.utility.doubled(&a.Gave, &a.GaveRun, p.mode, now)
	used := p.utility.doubled(&a.Used, &a.UsedRun, p.mode, now)
	return Rank{Num: gave.Sub(used), Den: 1}
}

// fairShare serves the smallest usage in proportion to the share.
type fairShare struct{ mode Mode }

// Rank implements Policy: −usage/share; a site without a share goes last.
func (p fairShare) Rank(a *Account, now int64) Rank {
	if a.Share <= 0 {
		return Rank{}
	}
	usage := a.Used.A.Sub(a.Unseen)
	if p.mode == Partial {
		usage = usage.Add(a.UsedRun.N.MulInt64(now)).Sub(a.UsedRun.S)
	}
	return Rank{Num: usage.Neg(), Den: a.Share}
}

// roundRobin serves the site whose latest start is oldest, never (0) first.
type roundRobin struct{}

// Rank implements Policy: −LastStart over 1.
func (roundRobin) Rank(a *Account, _ int64) Rank {
	return Rank{Num: Uint64(a.LastStart).Neg(), Den: 1}
}

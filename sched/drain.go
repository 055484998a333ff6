package sched

// To start n equal units of length d on cores that free at different times, one
// after another on the core that frees first, is to take the n smallest of all
// times At + j·d, j = 0, 1, … So it costs O(different times), whatever n is:
// a level up to which a fluid of n·d would fill the cores is at most d above the
// last start; all but one start of each core is counted by a division, and a
// search over the remaining window of length d finds the last.

// level returns how many of the first slots take part when n units of length d
// start, and the time up to which every start is taken; at most one start of a
// core is taken after it, none later than d after it.
//
// REQUIRES: n, d > 0, f is not empty.
func (f slots) level(n, d int64) (group int, upTo int64) {
	need, cores, first := Mul64(n, d), int64(0), f[0].At
	for i := range f {
		cores += f[i].Cores
		need = need.Add(Mul64(f[i].At-first, f[i].Cores))
		if i+1 == len(f) || need.Cmp(Mul64(f[i+1].At-first, cores)) <= 0 {
			return i + 1, first + int64(need.Div(cores).Lo) - d
		}
	}
	return 0, 0
}

// advance moves each slot past the starts up to a time; it returns how many
// those are and their sum. Slots beyond stay as they are.
func (f slots) advance(upTo, d int64) (started int64, sum Int128) {
	for i := range f {
		s := &f[i]
		if s.At > upTo {
			continue
		}
		k := (upTo-s.At)/d + 1
		started += s.Cores * k
		sum = sum.Add(startsOf(*s, k, d))
		s.At += k * d
	}
	return started, sum
}

// upTo returns how many cores free by a time; f need not be sorted.
func (f slots) upTo(at int64) (n int64) {
	for i := range f {
		if f[i].At <= at {
			n += f[i].Cores
		}
	}
	return n
}

// nth returns the time by which n cores are free, and how many are before it.
// All free after low and by high; f need not be sorted.
//
// REQUIRES: 0 < n ≤ all cores.
func (f slots) nth(n, low, high int64) (at, before int64) {
	below, by := int64(0), f.capacity()
	for interpolate := true; high-low > 1; interpolate = !interpolate {
		guess := low + (high-low)/2
		if interpolate && by > below {
			guess = low + int64(Mul64(high-low, n-below).Div(by-below).Lo)
			guess = max(low+1, min(guess, high-1))
		}
		if c := f.upTo(guess); c >= n {
			high, by = guess, c
		} else {
			low, below = guess, c
		}
	}
	return high, below
}

// drain starts n units of length d and returns the sum of their starts.
//
// REQUIRES: n, d > 0, f is not empty.
func (f *slots) drain(n, d int64) Int128 {
	group, upTo := f.level(n, d)
	g := (*f)[:group]
	started, sum := g.advance(upTo, d)
	split := Slot{}
	if rest := n - started; rest > 0 {
		last, before := g.nth(rest, upTo, upTo+d)
		sum = sum.Add(Mul64(last, rest-before))
		left := rest - before // of those that free at last
		for i := range g {
			switch s := &g[i]; {
			case s.At < last:
				sum = sum.Add(Mul64(s.At, s.Cores))
				s.At += d
			case s.At == last && left >= s.Cores:
				left -= s.Cores
				s.At += d
			case s.At == last && left > 0:
				split = Slot{last + d, left}
				s.Cores -= left
				left = 0
			}
		}
	}
	f.mergePrefix(group)
	if split.Cores > 0 {
		f.add(split.At, split.Cores)
	}
	return sum
}

// drained returns what drain would return; f stays as it is.
//
// REQUIRES: as drain; cores is f.capacity().
func (f slots) drained(n, d, cores int64) Int128 {
	if sum, ok := f.drainedSmall(n, d, cores); ok {
		return sum
	}
	group, upTo := f.level(n, d)
	var few [128]Slot
	g := slots(append(few[:0], f[:group]...))
	started, sum := g.advance(upTo, d)
	rest := n - started
	if rest == 0 {
		return sum
	}
	last, before := g.nth(rest, upTo, upTo+d)
	for i := range g {
		if g[i].At < last {
			sum = sum.Add(Mul64(g[i].At, g[i].Cores))
		}
	}
	return sum.Add(Mul64(last, rest-before))
}

// Bounds of drainedSmall: of its numbers, so that 64 bits hold their sums, and of
// how many lengths its times lie apart.
const (
	small     = 1 << 60
	smallSpan = 8
)

// drainedSmall is drained for the usual: numbers of 64 bits, and times that lie some
// lengths apart. It says whether it was that.
//
// REQUIRES: cores is f.capacity().
func (f slots) drainedSmall(n, d, cores int64) (Int128, bool) {
	first, span := f[0].At, f[len(f)-1].At-f[0].At
	if span > smallSpan*d || n/cores > small/d-2*smallSpan || (n/cores+2*smallSpan)*d > small/max(n, cores) {
		return Int128{}, false
	}
	sum := int64(0)
	if span > d {
		sum = f.drainedRuns(n, d)
	} else {
		sum = f.drainedRound(n, d, cores)
	}
	return Mul64(first, n).Add(Int64(sum)), true
}

// drainedRound returns the sum of starts since the first time if all times lie within one
// length. Then cores start in one order, again and again: some whole rounds, and a
// last one that the first cores take part in.
func (f slots) drainedRound(n, d, cores int64) int64 {
	first, rounds, rest := f[0].At, n/cores, n%cores
	sum := rest * rounds * d
	if rounds > 0 {
		for i := range f {
			sum += rounds * (f[i].At - first) * f[i].Cores
		}
		sum += cores * (rounds * (rounds - 1) / 2) * d
	}
	for i := 0; rest > 0; i++ {
		c := min(rest, f[i].Cores)
		sum += c * (f[i].At - first)
		rest -= c
	}
	return sum
}

// drainedRuns returns the sum of starts since the first time if the times lie at most
// smallSpan lengths apart. Up to the level, earlier cores start more often; slots that start
// equally often come in order, so the last starts are those of a few ordered runs.
func (f slots) drainedRuns(n, d int64) (sum int64) {
	first, need, group, at := f[0].At, n*d, int64(0), 0 // as level
	for ; at < len(f) && (at == 0 || need > (f[at].At-first)*group); at++ {
		group += f[at].Cores
		need += (f[at].At - first) * f[at].Cores
	}
	var all [smallSpan + 2]run
	runs, upTo, rounds := all[:0], need/group-d, int64(-1)
	for i := range at {
		t, k := f[i].At-first, int64(0)
		if t <= upTo {
			k = roundsBy(t, upTo, d)
			n -= k * f[i].Cores
			sum += f[i].Cores * (k*t + d*(k*(k-1)/2))
		}
		if k != rounds {
			runs, rounds = append(runs, run{next: t + k*d, at: i}), k
		}
		runs[len(runs)-1].end = i + 1
	}
	for n > 0 {
		r := 0
		for i := range runs {
			if runs[i].next < runs[r].next {
				r = i
			}
		}
		c := min(n, f[runs[r].at].Cores)
		sum += c * runs[r].next
		n -= c
		runs[r].advance(f)
	}
	return sum
}

// run is some slots in order, [at, end), that all start next by the same time after
// they are free.
type run struct {
	next    int64 // start of the slot at
	at, end int
}

// advance goes to the run's next slot.
func (r *run) advance(f slots) {
	if r.at++; r.at == r.end {
		r.next = small
		return
	}
	r.next += f[r.at].At - f[r.at-1].At
}

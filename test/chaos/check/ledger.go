package check

import (
	"math/big"
	"time"
)

// Ledger is a broker's view of the accounts.
type Ledger struct {
	Broker     string
	Index      uint64
	Priorities map[string]string // site → decimal
	Matrix     []Cell
}

// Cell is what an owner's runs used of an executor's machines: their number and
// the sum of milli-core milliseconds.
type Cell struct {
	Owner, Executor string
	Tasks           uint64
	A               string // decimal
}

// Zero judges one broker's ledger.
func (l Ledger) Zero() []Violation {
	var sum big.Int
	for site, text := range l.Priorities {
		p, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return []Violation{broken(ZeroSum, "%s shows priority %q for %s", l.Broker, text, site)}
		}
		sum.Add(&sum, p)
	}
	if sum.Sign() != 0 {
		return []Violation{broken(ZeroSum, "priorities at %s sum to %s at entry %d: %v", l.Broker, &sum, l.Index, l.Priorities)}
	}
	return nil
}

// slack is how much longer than its marks a run may be measured: starting and
// reaping a process on a busy machine.
const slack = 1500 * time.Millisecond

// rounding of a run: its start and its end are each cut to milliseconds more
// than once on their way.
const rounding = 3 * time.Millisecond

// young is a federation in which a home run may be charged for less than it
// was: log time stands still while nobody leads, and nothing ran longer than that.
const young = 15 * time.Second

// milliCores of every task of the chaos tests.
const milliCores = 1000

// pair is a cell of the matrix.
type pair struct{ owner, executor string }

// bounds are what a cell can hold.
type bounds struct {
	low, high time.Duration
	few, many uint64
}

// Recount judges the matrix by the runs. The last attempt of each task that
// ended by running is charged as shown; a home run is shown as its broker saw
// it and charged as it was measured, which is at least what its marks show.
// Whether an earlier attempt was charged (a failure is, a loss is not) can only
// be bounded by its marks.
func (l Ledger) Recount(owners map[string]string, shown []Shown, m Marks) []Violation {
	want := map[pair]*bounds{}
	at := func(owner, executor string) *bounds {
		p := pair{owner, executor}
		if want[p] == nil {
			want[p] = &bounds{}
		}
		return want[p]
	}
	for _, s := range shown {
		for _, t := range s.Tasks {
			for _, a := range m.Of(s.ID, t.Index) {
				b := at(owners[s.ID], a.Site)
				last := a.Attempt == t.Attempt && a.Token == t.Token
				switch {
				case last && (t.State == "succeeded" || t.State == "failed") && t.RunMs >= 0:
					run := time.Duration(t.RunMs) * time.Millisecond
					low := min(run, a.Length()) - rounding
					if time.Duration(a.Start-m.first) < young {
						low = 0
					}
					b.add(low, run+rounding, 1, 1)
				default:
					b.add(0, a.Length()+slack, 0, 1)
				}
			}
			if len(m.Of(s.ID, t.Index)) == 0 && t.Site != "" {
				at(owners[s.ID], t.Site).add(0, slack, 0, 1) // cancelled while it was being started
			}
		}
	}
	return l.compare(want)
}

func (b *bounds) add(low, high time.Duration, few, many uint64) {
	b.low += low
	b.high += high
	b.few += few
	b.many += many
}

func (l Ledger) compare(want map[pair]*bounds) []Violation {
	var out []Violation
	for _, c := range l.Matrix {
		b := want[pair{c.Owner, c.Executor}]
		if b == nil {
			b = &bounds{}
		}
		a, ok := new(big.Int).SetString(c.A, 10)
		low, high := big.NewInt(b.low.Milliseconds()*milliCores), big.NewInt(b.high.Milliseconds()*milliCores)
		if !ok || a.Cmp(low) < 0 || a.Cmp(high) > 0 || c.Tasks < b.few || c.Tasks > b.many {
			out = append(out, broken(Recount, "%s has %d runs of %s at %s with %s milli-core ms; the runs themselves were %d to %d with %s to %s",
				l.Broker, c.Tasks, c.Owner, c.Executor, c.A, b.few, b.many, low, high))
		}
		delete(want, pair{c.Owner, c.Executor})
	}
	for p, b := range want {
		if b.few > 0 {
			out = append(out, broken(Recount, "%s has no runs of %s at %s, there were at least %d", l.Broker, p.owner, p.executor, b.few))
		}
	}
	return out
}

package fsm

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/sched"
)

// FrozenLedger is a copy of the ledger at one entry. For 1000 sites that have all used each other it has a
// million cells. Copying those takes some 20 ms, during which Apply waits; writing their numbers takes a
// second, during which it need not.
type FrozenLedger struct {
	view  LedgerView // without sites and matrix
	names []string   // of sites, by cell.executor
	sites []frozenAccount
}

// frozenAccount is one site's account, and what its tasks used by executor.
type frozenAccount struct {
	name                            string
	contribution, utility, priority sched.Int128
	row                             []cell
}

// FreezeLedger copies every account and the matrix that they come from.
func (s *views) FreezeLedger() *FrozenLedger {
	f := &FrozenLedger{view: LedgerView{Index: s.index, TimeMs: s.time}}
	if s.founded == 0 {
		return f
	}
	f.view.Unit = sched.Unit(s.params.Policy)
	for _, x := range s.sites {
		f.names = append(f.names, x.name)
	}
	f.sites = make([]frozenAccount, 0, len(s.order))
	for _, x := range s.order {
		a := frozenAccount{name: x.name, row: slices.Clone(x.row)}
		a.contribution, a.utility, a.priority = s.standing(x)
		f.sites = append(f.sites, a)
	}
	return f
}

// Ledger returns every account and the matrix that they come from.
func (s *views) Ledger() LedgerView { return s.FreezeLedger().View() }

// View returns the ledger, by site, with its numbers as decimal text.
func (f *FrozenLedger) View() LedgerView {
	v := f.view
	for i := range f.sites {
		a := &f.sites[i]
		v.Sites = append(v.Sites, AccountView{
			Site: a.name, Contribution: a.contribution.String(),
			Utility: a.utility.String(), Priority: a.priority.String(),
		})
		row := slices.SortedFunc(slices.Values(a.row), func(a, b cell) int {
			return cmp.Compare(f.names[a.executor], f.names[b.executor])
		})
		for _, c := range row {
			v.Matrix = append(v.Matrix, CellView{
				Owner: a.name, Executor: f.names[c.executor], Tasks: c.tasks,
				A: c.sums.A.String(), B: c.sums.B.String(), R: c.sums.R.String(),
			})
		}
	}
	return v
}

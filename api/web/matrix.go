package web

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
)

// matrix says who used how much of whose machines.
type matrix struct {
	Columns []string // executors
	Rows    []matrixRow
	Folded  int // sites that share the row and column "others"
}

type matrixRow struct {
	Owner string
	Cells []matrixCell
}

// matrixCell is one pair; Heat is 0 (nothing) to 6.
type matrixCell struct {
	Executor string
	Own      bool
	Text     string
	Tasks    uint64
	Heat     int
}

// maxMatrix bounds the sites shown on their own; the others are folded into one.
const maxMatrix = 16

// others is no site's name.
const others = "(others)"

// matrixOf folds the ledger's matrix to the sites that lent and used most.
func matrixOf(in amounts, l fsm.LedgerView) matrix {
	names := greatest(in, l)
	shown := map[string]int{}
	for i, n := range names {
		shown[n] = i
	}
	m := matrix{Columns: names, Folded: max(0, len(l.Sites)-len(names))}
	if m.Folded > 0 {
		m.Columns = append(m.Columns, others)
	}
	at := func(site string) int {
		if i, ok := shown[site]; ok {
			return i
		}
		return len(names)
	}
	size := len(m.Columns)
	used, tasks := make([]float64, size*size), make([]uint64, size*size)
	for _, c := range l.Matrix {
		i := at(c.Owner)*size + at(c.Executor)
		used[i] += in.used(c.A)
		tasks[i] += c.Tasks
	}
	m.fill(used, tasks)
	return m
}

// greatest returns the sites to show, by name.
func greatest(in amounts, l fsm.LedgerView) []string {
	moved := map[string]float64{}
	for _, c := range l.Matrix {
		n := in.used(c.A)
		moved[c.Owner] += n
		moved[c.Executor] += n
	}
	names := make([]string, 0, len(l.Sites))
	for _, a := range l.Sites {
		names = append(names, a.Site)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(moved[b], moved[a]) })
	names = names[:min(len(names), maxMatrix)]
	slices.Sort(names)
	return names
}

func (m *matrix) fill(used []float64, tasks []uint64) {
	most := 0.0
	for _, n := range used {
		most = max(most, n)
	}
	size := len(m.Columns)
	for i, owner := range m.Columns {
		row := matrixRow{Owner: owner}
		for j, executor := range m.Columns {
			n, k := used[i*size+j], tasks[i*size+j]
			cell := matrixCell{Executor: executor, Own: i == j && owner != others, Text: words4(n), Tasks: k}
			if n > 0 {
				cell.Heat = 1 + min(5, int(n/most*6))
			}
			row.Cells = append(row.Cells, cell)
		}
		m.Rows = append(m.Rows, row)
	}
}

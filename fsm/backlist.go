package fsm

import (
	"iter"
	"slices"
	"sort"
)

// backList is a job's returned tasks, by task. It is kept in pieces, for sites that
// are lost one after the other return tasks between those of others: into one list of
// a million each of them would move megabytes.
type backList struct {
	pieces [][]backTask // Invariant: none is empty, or longer than mostBack
	n      int
}

// mostBack is how many tasks a piece has at most.
const mostBack = 512

// first is the first one, nil if there is none.
func (l *backList) first() *backTask {
	if l.n == 0 {
		return nil
	}
	return &l.pieces[0][0]
}

// seek returns where a task is, or would be: a piece that is there, unless there are
// none.
func (l *backList) seek(task uint32) (piece, at int) {
	piece = sort.Search(len(l.pieces), func(i int) bool { return l.pieces[i][0].task > task })
	if piece = max(0, piece-1); piece == len(l.pieces) {
		return 0, 0
	}
	p := l.pieces[piece]
	return piece, sort.Search(len(p), func(i int) bool { return p[i].task >= task })
}

// find returns a task, or nil.
func (l *backList) find(task uint32) *backTask {
	i, k := l.seek(task)
	if l.n == 0 || k == len(l.pieces[i]) || l.pieces[i][k].task != task {
		return nil
	}
	return &l.pieces[i][k]
}

// insert enters a task that is not there.
func (l *backList) insert(b backTask) {
	l.n++
	if len(l.pieces) == 0 {
		l.pieces = [][]backTask{{b}}
		return
	}
	i, k := l.seek(b.task)
	p := l.pieces[i]
	switch {
	case len(p) < mostBack:
		l.pieces[i] = slices.Insert(p, k, b)
	case k == len(p): // as a rule they come in order
		l.pieces = slices.Insert(l.pieces, i+1, []backTask{b})
	default:
		half := slices.Clone(p[mostBack/2:])
		l.pieces[i] = p[: mostBack/2 : mostBack/2]
		l.pieces = slices.Insert(l.pieces, i+1, half)
		if k > mostBack/2 {
			i, k = i+1, k-mostBack/2
		}
		l.pieces[i] = slices.Insert(l.pieces[i], k, b)
	}
}

// remove takes out a task that is there.
func (l *backList) remove(task uint32) {
	i, k := l.seek(task)
	l.n--
	switch p := l.pieces[i]; {
	case len(p) == 1 && i == 0:
		l.pieces = l.pieces[1:]
	case len(p) == 1:
		l.pieces = slices.Delete(l.pieces, i, i+1)
	case k == 0:
		l.pieces[i] = p[1:]
	default:
		l.pieces[i] = slices.Delete(p, k, k+1)
	}
	if l.n == 0 {
		l.pieces = nil
	}
}

// all yields the tasks in order, for reading only.
func (l *backList) all() iter.Seq[*backTask] {
	return func(yield func(*backTask) bool) {
		for _, p := range l.pieces {
			for i := range p {
				if !yield(&p[i]) {
					return
				}
			}
		}
	}
}

func (l *backList) clone() backList {
	out := backList{n: l.n}
	for _, p := range l.pieces {
		out.pieces = append(out.pieces, slices.Clone(p))
	}
	return out
}

// Package followers remembers which jobs of a site have waited for which, once they do no more: their specs name what
// they have waited for, and nothing else leads the other way. It is for people who look at an ended job, and is in
// memory alone: a broker that was started again knows none of those before. It never imports a backend or the shell.
package followers

import "slices"

const (
	// MaxListed is how many followers of one job are remembered by number; the others are counted.
	MaxListed = 100
	// maxJobs and maxAll bound the jobs of which followers are remembered, and the numbers of all: some megabytes. The
	// oldest go.
	maxJobs = 50_000
	maxAll  = 200_000
)

// Book remembers followers. The zero Book remembers none. One goroutine has it.
type Book struct {
	jobs map[uint64]*followed
	// order are the jobs, those first that were followed first.
	order []uint64
	all   int // numbers that are listed
}

// followed is a job that others have waited for.
type followed struct {
	first []uint64 // Invariant: at most MaxListed
	all   int
}

// Add notes that a job has waited for another one. The caller does so once.
func (b *Book) Add(job, follower uint64) { b.add(job, follower, maxJobs, maxAll) }

func (b *Book) add(job, follower uint64, jobs, all int) {
	if b.jobs == nil {
		b.jobs = map[uint64]*followed{}
	}
	f := b.jobs[job]
	if f == nil {
		f = &followed{}
		b.jobs[job] = f
		b.order = append(b.order, job)
	}
	if f.all++; len(f.first) < MaxListed {
		f.first = append(f.first, follower)
		b.all++
	}
	for len(b.jobs) > jobs || b.all > all {
		b.all -= len(b.jobs[b.order[0]].first)
		delete(b.jobs, b.order[0])
		b.order = b.order[1:]
	}
}

// Of returns the first most of the jobs that have waited for one, and how many did, as far as is remembered.
func (b *Book) Of(job uint64, most int) (first []uint64, all int) {
	f := b.jobs[job]
	if f == nil {
		return nil, 0
	}
	return slices.Clone(f.first[:min(max(most, 0), len(f.first))]), f.all
}

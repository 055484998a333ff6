package whose

import (
	"math"
	"slices"
	"sort"
	"sync"
	"unique"

	"github.com/cloudshare/cloudshare/node/record"
)

// maxRuns is how many runs are held, those of forgotten jobs among them, before the latter go.
const maxRuns = 500_000

// sweepSteps bounds how many jobs one sweep looks at.
const sweepSteps = 1000

// run is consecutive jobs of one user. It is also what the journal holds.
type run struct {
	first uint64
	jobs  uint32 // Invariant: at least 1
	user  unique.Handle[string]
}

// Book says whose the jobs of a site are. One goroutine changes it, the core's; any may ask.
type Book struct {
	mu sync.RWMutex
	// runs by first job. Changed with mu held, by the core's goroutine alone. Invariant: without overlaps.
	runs []run
	// changed is where the runs begin that the journal does not hold yet. Invariant: none between events.
	changed int
	// next is the run, and looked the number of its jobs, at which the sweep goes on.
	next   int
	looked uint32
	most   int
}

// NewBook returns a book in which all jobs are the site's own.
func NewBook() *Book { return &Book{most: maxRuns} }

// Len returns how many runs of jobs are held.
func (b *Book) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.runs)
}

// UserOf returns the user of a job of this site by its number, "" if it is of none.
func (b *Book) UserOf(num uint64) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	i := sort.Search(len(b.runs), func(i int) bool { return b.runs[i].first > num }) - 1
	if i < 0 || num-b.runs[i].first >= uint64(b.runs[i].jobs) {
		return ""
	}
	return b.runs[i].user.Value()
}

// Add notes the user of a job whose number is above all others'; "" = none.
func (b *Book) Add(num uint64, user string) {
	if user == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.runs) - 1
	if last >= 0 {
		r := &b.runs[last]
		if r.user.Value() == user && num-r.first == uint64(r.jobs) && r.jobs < math.MaxUint32 {
			r.jobs++
			b.changed = min(b.changed, last)
			return
		}
	}
	b.runs = append(b.runs, run{first: num, jobs: 1, user: unique.Make(user)})
}

// Write has what was added since the last call written to the journal.
func (b *Book) Write(writes *[]record.Write) {
	for ; b.changed < len(b.runs); b.changed++ {
		r := &b.runs[b.changed]
		*writes = append(*writes, record.Put(record.BucketUsers, record.Number(r.first), r.encode()))
	}
}

// Sweep drops runs of which all jobs are forgotten, once there are many runs: until then what is archived keeps its
// user. It looks at a bounded number of jobs.
func (b *Book) Sweep(forgotten func(num uint64) bool, writes *[]record.Write) {
	var gone map[uint64]bool
	for step := 0; step < sweepSteps && len(b.runs)-len(gone) > b.most; step++ {
		if b.next >= len(b.runs) {
			b.next, b.looked = 0, 0
			break
		}
		r := &b.runs[b.next]
		if forgotten(r.first + uint64(b.looked)) {
			if b.looked++; b.looked < r.jobs {
				continue
			}
			if gone == nil {
				gone = map[uint64]bool{}
			}
			gone[r.first] = true
			*writes = append(*writes, record.Tidy(record.BucketUsers, record.Number(r.first)))
		}
		b.next, b.looked = b.next+1, 0
	}
	b.drop(gone)
}

// drop takes runs out. REQUIRES: all of them are before next.
func (b *Book) drop(gone map[uint64]bool) {
	if len(gone) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs = slices.DeleteFunc(b.runs, func(r run) bool { return gone[r.first] })
	b.next -= len(gone)
	b.changed = len(b.runs)
}

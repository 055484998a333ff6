package sim

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Task is one task of a case. Times are whole seconds since the case's start.
type Task struct {
	Release int64
	Run     int64 // ≥ 1
	Width   int64 // cores, on one machine
	Site    int   // its owner
	// Job is the job's number in its log, Index the task's in the job (from 0);
	// they order tasks of one release.
	Job   int64
	Index int32
	// Timeout is what its site declares, seconds; 0 = none, else ≥ Run.
	Timeout int64
	// Background: it is known to its own site's machines only, which run it
	// before anything of the federation, and never preempt for it. Its wait
	// does not count.
	Background bool
}

// Case is what one run plays: a federation, its work, and its rules.
type Case struct {
	// Cores of each site, on one machine; a site's number is its position.
	Cores []int64
	// Tasks by (Release, Job, Index).
	Tasks []Task
	// Params of the state machine; QuantumMs is set to a second.
	Params command.Params
	// Seed of the choice of machines.
	Seed uint64
	// Home says what becomes of a task that could start at home.
	Home Home
	// WholeShare counts what background tasks take as contributed, for FAIRSHARE:
	// then a site's share is its number of cores. Otherwise nobody knows of them: its
	// share is what the site exposes, and, with Params.ClaimedHome, its home runs.
	WholeShare bool
	// Conduct of each site; nil: all are honest, and declare no timeouts.
	Conduct []Conduct
	// Leader is hostile; nil: an honest one orders entries. A coalition by itself ([Case.Of]) has an honest one.
	Leader *HostileLeader
}

// Home is how event 1 of the paper and its accounting are played.
type Home uint8

const (
	// HomeReported is the product: what starts at home is reported to the ledger
	// once it has ended.
	HomeReported Home = iota
	// HomeUnreported keeps home runs out of the ledger.
	HomeUnreported
	// HomeNever sends every task through the queue.
	HomeNever
)

// String returns the name in reports.
func (h Home) String() string {
	switch h {
	case HomeReported:
		return "reported at its end"
	case HomeUnreported:
		return "not in the ledger"
	case HomeNever:
		return "none"
	}
	return fmt.Sprintf("Home(%d)", uint8(h))
}

// Bounds of a case.
const (
	MaxSites = 12 // 2^N − 1 coalitions are played
	MaxCores = 1_000_000
	MaxTasks = 5_000_000
	// maxSecond bounds every time: what log time can hold, less a year.
	maxSecond = 9 * 366 * 24 * 3600
)

// Validate names the first thing that cannot be played.
func (c *Case) Validate() error {
	if n := len(c.Cores); n < 1 || n > MaxSites {
		return fmt.Errorf("%w: %d sites, want 1 to %d", ErrBadCase, n, MaxSites)
	}
	for i, n := range c.Cores {
		if n < 1 || n > MaxCores {
			return fmt.Errorf("%w: site %s has %d cores, want 1 to %d", ErrBadCase, SiteName(i), n, MaxCores)
		}
	}
	if len(c.Tasks) > MaxTasks {
		return fmt.Errorf("%w: %d tasks, at most %d: take a shorter period", ErrBadCase, len(c.Tasks), MaxTasks)
	}
	for i := range c.Tasks {
		if err := c.checkTask(i); err != nil {
			return err
		}
	}
	if err := c.Leader.check(len(c.Cores)); err != nil {
		return err
	}
	p := c.Params
	p.QuantumMs = 1000
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadCase, err)
	}
	return nil
}

func (c *Case) checkTask(i int) error {
	t := &c.Tasks[i]
	widest := slices.Max(c.Cores)
	switch {
	case t.Site < 0 || t.Site >= len(c.Cores):
		return fmt.Errorf("%w: job %d belongs to site %d of %d", ErrBadCase, t.Job, t.Site, len(c.Cores))
	case t.Release < 0 || t.Run < 1 || t.Release > maxSecond || t.Run > maxSecond:
		return fmt.Errorf("%w: job %d released at %d for %d seconds", ErrBadCase, t.Job, t.Release, t.Run)
	case t.Timeout != 0 && t.Timeout < t.Run:
		return fmt.Errorf("%w: job %d runs for %d seconds, with a timeout of %d", ErrBadCase, t.Job, t.Run, t.Timeout)
	case t.Width < 1 || t.Width > widest:
		return fmt.Errorf("%w: job %d is %d cores wide, the largest site has %d", ErrBadCase, t.Job, t.Width, widest)
	case t.Background && t.Width > c.Cores[t.Site]:
		return fmt.Errorf("%w: background job %d is %d cores wide, its site has %d", ErrBadCase, t.Job, t.Width, c.Cores[t.Site])
	case i > 0 && compareTasks(&c.Tasks[i-1], t) > 0:
		return fmt.Errorf("%w: task %d (job %d) is out of order", ErrBadCase, i, t.Job)
	}
	return nil
}

// compareTasks returns the order in which tasks arrive.
func compareTasks(a, b *Task) int {
	return cmp.Or(cmp.Compare(a.Release, b.Release), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Index, b.Index))
}

// SiteName returns a site's id in the federation: they sort as they are numbered.
func SiteName(i int) string { return siteNames[i] }

var siteNames = func() (names [MaxSites]string) {
	for i := range names {
		names[i] = fmt.Sprintf("site-%02d", i+1)
	}
	return names
}()

// Coalition is a set of sites, bit by position.
type Coalition uint32

// Has reports whether site i is in it.
func (c Coalition) Has(i int) bool { return c>>i&1 == 1 }

// First returns the first site that is in it. REQUIRES: there is one.
func (c Coalition) First() int { return bits.TrailingZeros32(uint32(c)) }

// Grand returns the coalition of n sites.
func Grand(n int) Coalition { return 1<<n - 1 }

// Of returns the case of a coalition alone: its sites with their cores and
// tasks, renumbered in the same order, under a seed of its own.
func (c *Case) Of(s Coalition) *Case {
	sub := &Case{Params: c.Params, Seed: c.SeedOf(s), Home: c.Home, WholeShare: c.WholeShare}
	var number [MaxSites]int
	for i, cores := range c.Cores {
		if s.Has(i) {
			number[i] = len(sub.Cores)
			sub.Cores = append(sub.Cores, cores)
		}
	}
	for i := range c.Tasks {
		if t := c.Tasks[i]; s.Has(t.Site) {
			t.Site = number[t.Site]
			sub.Tasks = append(sub.Tasks, t)
		}
	}
	return sub
}

// SeedOf keys the choice of machines by the coalition; the grand one has the
// case's own seed.
func (c *Case) SeedOf(s Coalition) uint64 {
	if s == Grand(len(c.Cores)) {
		return c.Seed
	}
	return fsm.Mix(c.Seed ^ fsm.Mix(uint64(s)))
}

// Params returns those of the simulator under a policy: the paper's algorithm and
// nothing of the product's own additions, no leases, and little memory. FAIRSHARE's
// share is the paper's, too: it takes what sites say of their own users for true.
func Params(policy string) command.Params {
	return command.Params{
		Policy: policy, ClaimedHome: true, RateCPU: 1, QuantumMs: 1000, RetainJobs: 100,
		DepartureMs: 0,
	}
}

package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Scenario is one of the paper's three ways to spread work and cores.
type Scenario int

// The scenarios, numbered as in the paper.
const (
	Equal      Scenario = 1 // equal cores
	Zipf       Scenario = 2 // cores by Zipf's law
	Background Scenario = 3 // equal cores; some users are known to their site only
)

// Setup are the choices that make a period of a workload an instance.
type Setup struct {
	Sites    int
	Scenario Scenario
	Period   int64   // seconds of submissions
	Unit     int64   // seconds of a unit task; 0 = the jobs as they are
	Load     float64 // of the cores, over the period; see Cores
	// Cores in all; 0: as the load says.
	Cores    int64
	Exponent float64 // of Zipf's law
	// Declare is what timeouts tasks have.
	Declare Declare
	// BackgroundShare is the probability that a user is background, in scenario 3.
	BackgroundShare float64
	Seed            uint64
}

// Declare is what a site declares as the timeouts of its tasks: what policies by
// projected waits know of lengths before tasks end.
type Declare string

// The ways to declare. Of unit tasks, what a job's user asked for says nothing.
const (
	DeclareNothing Declare = ""      // none: lengths are estimated
	DeclareAsked   Declare = "asked" // what the log says that the user asked for; if it ran longer, or that is unknown, none
	DeclareTruth   Declare = "truth" // how long it will run
)

// DefaultSetup returns the paper's, with theory.md's choices where it is silent.
func DefaultSetup() Setup {
	return Setup{
		Sites: 5, Scenario: Equal, Period: 24 * 3600, Unit: 3600, Load: 1, Exponent: 1, BackgroundShare: 0.5,
		Seed: 1,
	}
}

// Validate names the first choice out of its bounds.
func (s *Setup) Validate() error {
	switch {
	case s.Sites < 1 || s.Sites > MaxSites:
		return fmt.Errorf("%w: %d sites, want 1 to %d", ErrBadCase, s.Sites, MaxSites)
	case s.Scenario < Equal || s.Scenario > Background:
		return fmt.Errorf("%w: scenario %d, want 1, 2 or 3", ErrBadCase, s.Scenario)
	case s.Period < 1 || s.Period > maxSecond/2:
		return fmt.Errorf("%w: a period of %d seconds, want 1 to %d", ErrBadCase, s.Period, maxSecond/2)
	case s.Unit < 0 || s.Unit > maxSecond/2:
		return fmt.Errorf("%w: a unit task of %d seconds, want 0 (jobs as they are) to %d", ErrBadCase, s.Unit, maxSecond/2)
	case s.Declare != DeclareNothing && s.Declare != DeclareTruth && (s.Declare != DeclareAsked || s.Unit > 0):
		return fmt.Errorf("%w: tasks declare %q, want nothing, truth, or, for jobs as they are, asked", ErrBadCase, s.Declare)
	case s.Cores < 0 || s.Cores > MaxCores:
		return fmt.Errorf("%w: %d cores, want 1 to %d, or 0 for as many as the load says", ErrBadCase, s.Cores, MaxCores)
	case s.Cores > 0 && s.Cores < int64(s.Sites):
		return fmt.Errorf("%w: %d cores for %d sites: every site needs one", ErrBadCase, s.Cores, s.Sites)
	case s.Cores == 0 && !(s.Load > 0 && s.Load <= 1000):
		return fmt.Errorf("%w: a load of %v, want more than 0, at most 1000", ErrBadCase, s.Load)
	case !(s.Exponent >= 0 && s.Exponent <= 10):
		return fmt.Errorf("%w: a Zipf exponent of %v, want 0 to 10", ErrBadCase, s.Exponent)
	case !(s.BackgroundShare >= 0 && s.BackgroundShare <= 1):
		return fmt.Errorf("%w: a background share of %v, want 0 to 1", ErrBadCase, s.BackgroundShare)
	}
	return nil
}

// Instance is a case together with where it comes from.
type Instance struct {
	Case
	From    int64 // second of the workload at which its period begins
	Jobs    int   // in the period
	Users   int   // in the period
	TooWide int   // jobs left out: wider than any site
}

// maxWork bounds what a period's jobs need, in core-seconds: the archive's largest
// logs have less than 1e13.
const maxWork = 1 << 60

// maxDraws bounds how often a period is drawn until there is enough in it.
const maxDraws = 1000

// Draw chooses the start of period n at random: one with at least as many users
// as there are sites. It also returns how many starts were passed over.
func (w *Workload) Draw(s *Setup, n int) (from int64, passed int, err error) {
	seconds := w.Span() + 1
	if seconds < s.Period {
		return 0, 0, fmt.Errorf("draw a period of %s: %w: it spans %d seconds of submissions, a period is %d; choose a shorter one",
			w.Name, ErrTooShort, seconds, s.Period)
	}
	d := NewKeyedRand(s.Seed, w.key, 1, uint64(n))
	for ; passed < maxDraws; passed++ {
		from = d.Below(seconds - s.Period + 1)
		if users(w.Between(from, from+s.Period)) >= s.Sites {
			return from, passed, nil
		}
	}
	return 0, passed, fmt.Errorf("draw a period of %s: %w: none of %d periods of %d seconds had %d users, one for each site; choose a longer period or fewer sites",
		w.Name, ErrTooFew, maxDraws, s.Period, s.Sites)
}

func users(jobs []Job) int {
	seen := map[int64]bool{}
	for i := range jobs {
		seen[jobs[i].User] = true
	}
	return len(seen)
}

// Instance makes a case of the period that begins at a second of the workload,
// under the mapping-th mapping of users to sites. Params are left to the caller.
func (w *Workload) Instance(s *Setup, from int64, mapping int) (*Instance, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if from < 0 || from > w.Span() {
		return nil, fmt.Errorf("%w: %s from second %d: its jobs are submitted from second 0 to %d; begin there", ErrBadCase, w.Name, from, w.Span())
	}
	jobs := w.Between(from, from+s.Period)
	in := &Instance{From: from, Jobs: len(jobs), Users: users(jobs)}
	if in.Users < s.Sites {
		return nil, fmt.Errorf("%s from second %d: %w: %d users for %d sites; choose a longer period or fewer sites",
			w.Name, from, ErrTooFew, in.Users, s.Sites)
	}
	key := []uint64{s.Seed, w.key, 2, uint64(from), uint64(mapping)}
	in.Seed = NewKeyedRand(append(key, 3)...).Next()
	need, err := w.work(jobs, s.Unit)
	if err != nil {
		return nil, err
	}
	if most := s.Load * float64(s.Period) * MaxCores; s.Cores == 0 && float64(need) > most {
		return nil, fmt.Errorf("%s from second %d: %w: for a load of %v its work of %d core-seconds needs more than %d cores; take a higher load, or say how many cores there are",
			w.Name, from, ErrBadCase, s.Load, need, MaxCores)
	}
	in.Cores = s.cores(need, NewKeyedRand(append(key, 4)...))
	home := NewKeyedRand(append(key, 5)...).key
	local := NewKeyedRand(append(key, 6)...).key
	for i := range jobs {
		in.addJob(s, &jobs[i], home, local)
	}
	slices.SortFunc(in.Tasks, func(a, b Task) int { return compareTasks(&a, &b) })
	if len(in.Tasks) > MaxTasks {
		return nil, fmt.Errorf("%s from second %d: %w: %d tasks, at most %d: choose a shorter period", w.Name, from, ErrBadCase, len(in.Tasks), MaxTasks)
	}
	if len(in.Tasks) == 0 {
		return nil, fmt.Errorf("%s from second %d: %w: each of %d jobs is wider than every site it could run at, the largest has %d cores; give the sites more",
			w.Name, from, ErrBadCase, in.TooWide, slices.Max(in.Cores))
	}
	return in, nil
}

// addJob adds a job's tasks; who owns it and whether it is background depends on
// its user only.
func (in *Instance) addJob(s *Setup, j *Job, home, local uint64) {
	t := Task{Release: j.Submit - in.From, Job: j.Number, Run: j.Run, Width: j.Width}
	t.Site = int(NewKeyedRand(home, uint64(j.User)).Below(int64(s.Sites)))
	if s.Scenario == Background {
		t.Background = float64(NewKeyedRand(local, uint64(j.User)).Below(1<<52)) < s.BackgroundShare*(1<<52)
	}
	if s.Unit == 0 {
		if widest := slices.Max(in.Cores); j.Width > widest || t.Background && j.Width > in.Cores[t.Site] {
			in.TooWide++
			return
		}
		in.Tasks = append(in.Tasks, s.declared(t, j.Asked))
		return
	}
	t.Run, t.Width = s.Unit, 1
	t = s.declared(t, 0)
	for range j.Width * units(j.Run, s.Unit) {
		if len(in.Tasks) > MaxTasks {
			return
		}
		in.Tasks = append(in.Tasks, t)
		t.Index++
	}
}

// declared returns a task with its timeout.
func (s *Setup) declared(t Task, asked int64) Task {
	switch {
	case s.Declare == DeclareTruth:
		t.Timeout = t.Run
	case s.Declare == DeclareAsked && asked >= t.Run:
		t.Timeout = asked
	}
	return t
}

// units returns how many unit tasks a run is, on each of its processors.
func units(run, unit int64) int64 { return (run + unit - 1) / unit }

// work returns what jobs need, in core-seconds: of their unit tasks, or as they are.
// Error: ErrBadCase, if that is nonsense that 64 bits do not hold.
func (w *Workload) work(jobs []Job, unit int64) (sum int64, err error) {
	for i := range jobs {
		run := jobs[i].Run
		if unit > 0 {
			run = units(run, unit) * unit
		}
		hi, need := bits.Mul64(uint64(jobs[i].Width), uint64(run))
		if hi > 0 || need > uint64(maxWork-sum) {
			return 0, fmt.Errorf("%s: %w: job %d on %d processors for %d seconds: with it the period's work is over %d core-seconds; take it out of the log",
				w.Name, ErrBadCase, jobs[i].Number, jobs[i].Width, jobs[i].Run, int64(maxWork))
		}
		sum += int64(need)
	}
	return sum, nil
}

// cores spreads the cores over the sites. Equal ones are equal exactly.
func (s *Setup) cores(work int64, d *KeyedRand) []int64 {
	total := s.Cores
	if total == 0 {
		total = int64(math.Round(float64(work) / (float64(s.Period) * s.Load)))
	}
	total = max(total, int64(s.Sites))
	if s.Scenario != Zipf {
		each := max(1, (total+int64(s.Sites)/2)/int64(s.Sites))
		return slices.Repeat([]int64{each}, s.Sites)
	}
	cores := apportion(total, zipf(s.Sites, s.Exponent))
	shuffle(d, cores)
	return cores
}

// zipf returns n weights in proportion to k^−e.
func zipf(n int, e float64) []int64 {
	weights := make([]int64, n)
	for k := range weights {
		weights[k] = max(1, int64(math.Round(1e9/math.Pow(float64(k+1), e))))
	}
	return weights
}

// apportion splits total by largest remainders, at least one for each; what
// that takes, the largest gives. REQUIRES: total ≥ len(weights).
func apportion(total int64, weights []int64) []int64 {
	var sum int64
	for _, w := range weights {
		sum += w
	}
	n := len(weights)
	parts, rest, left := make([]int64, n), make([]int, n), total
	for i, w := range weights {
		parts[i], rest[i] = total*w/sum, i
		left -= parts[i]
	}
	slices.SortStableFunc(rest, func(a, b int) int {
		return cmp.Compare(total*weights[b]%sum, total*weights[a]%sum)
	})
	for _, i := range rest[:left] {
		parts[i]++
	}
	for i := range parts {
		if parts[i] == 0 {
			largest := slices.Index(parts, slices.Max(parts))
			parts[i]++
			parts[largest]--
		}
	}
	return parts
}

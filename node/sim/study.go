package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/sched"
)

// Study is the paper's evaluation: every combination of its logs, periods, loads,
// user mappings and scenarios is an instance, in which every policy plays.
type Study struct {
	Workloads []*Workload `json:"-"`
	Setup     Setup       // Scenario, Load and Cores are the study's
	Periods   int         // of each log
	Mappings  int         // of users to sites, of each period
	Loads     []float64
	Scenarios []Scenario
	Policies  []string
	Rules     Rules
	// Sample: in every so many-th instance all coalitions are played by brokers,
	// too, and compared with the counted ones. 1 = in all, 0 = in none.
	Sample int
}

// Rules are what the paper leaves open about a run.
type Rules struct {
	Running    sched.Mode // how running tasks count
	Home       Home       // how home runs count
	FixedOrder bool       // machines in order, not by the keyed choice
	Reverse    bool       // sites numbered backwards, which turns the last tie-break around
	WholeShare bool       // FAIRSHARE's share is a site's number of cores; see Case
}

// String names what differs from the defaults.
func (r Rules) String() string {
	return fmt.Sprintf("running %s, home runs %s, fixed order %t, reversed %t, whole share %t", r.Running, r.Home, r.FixedOrder, r.Reverse, r.WholeShare)
}

// DefaultStudy is the one of theory.md §5.
func DefaultStudy(workloads ...*Workload) *Study {
	return &Study{
		Workloads: workloads, Setup: DefaultSetup(), Periods: 20, Mappings: 4,
		Loads: []float64{0.5, 0.75, 1, 1.5, 2}, Scenarios: []Scenario{Equal, Zipf, Background},
		Policies: sched.Names(), Sample: 50,
	}
}

// Bounds of a study.
const (
	maxPeriods  = 10_000
	maxMappings = 1000
	maxLoads    = 100
)

// Validate names the first thing that cannot be studied.
func (s *Study) Validate() error {
	switch {
	case len(s.Workloads) == 0:
		return fmt.Errorf("%w: no log", ErrBadCase)
	case s.Periods < 1 || s.Periods > maxPeriods:
		return fmt.Errorf("%w: %d periods, want 1 to %d", ErrBadCase, s.Periods, maxPeriods)
	case s.Mappings < 1 || s.Mappings > maxMappings:
		return fmt.Errorf("%w: %d mappings, want 1 to %d", ErrBadCase, s.Mappings, maxMappings)
	case len(s.Loads) == 0 || len(s.Loads) > maxLoads || len(s.Scenarios) == 0 || len(s.Policies) == 0 || s.Sample < 0:
		return fmt.Errorf("%w: %d loads, %d scenarios, %d policies, sample %d", ErrBadCase, len(s.Loads), len(s.Scenarios), len(s.Policies), s.Sample)
	case s.Setup.Unit == 0:
		return fmt.Errorf("%w: fairness is measured on unit tasks only", ErrBadCase)
	}
	for _, load := range s.Loads {
		for _, scenario := range s.Scenarios {
			setup := s.setup(load, scenario)
			if err := setup.Validate(); err != nil {
				return err
			}
		}
	}
	for _, p := range s.Policies {
		if _, err := sched.New(p, s.Rules.Running); err != nil {
			return fmt.Errorf("%w: %w", ErrBadCase, err)
		}
	}
	return nil
}

func (s *Study) setup(load float64, scenario Scenario) Setup {
	setup := s.Setup
	setup.Load, setup.Scenario, setup.Cores = load, scenario, 0
	return setup
}

// Mark names a study for ever: another one has another, and so other results.
func (s *Study) Mark() string {
	var logs []string
	for _, w := range s.Workloads {
		logs = append(logs, w.Name, w.SHA256)
	}
	text, err := json.Marshal(struct {
		Study *Study
		Logs  []string
		Code  int // raised when results change
	}{s, logs, 2})
	if err != nil {
		panic("a study does not encode: " + err.Error()) // numbers and names only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Row is the result of one instance. Waits are seconds.
type Row struct {
	Index                   int
	Log                     string
	Scenario                Scenario
	Load                    float64
	Period, Mapping         int
	From                    int64
	Jobs, Users, Tasks      int
	Cores                   []int64
	Passed                  int // starts of the period that were passed over: too few users
	Scale                   int64
	Phi                     []int64   // φ·Scale by site
	Total                   int64     // v(N)
	Waits                   [][]int64 // by policy, by site
	Played                  bool      // all coalitions were played by brokers, too
	Home, Decisions, Events uint64    // of the first policy's run
}

// Fair returns the instance's φ.
func (r *Row) Fair() *Fair { return &Fair{Scale: r.Scale, Phi: r.Phi, Total: r.Total} }

// key is an instance's place in a study.
type key struct {
	workload, period, mapping int
	load                      float64
	scenario                  Scenario
}

// keys lists all instances.
func (s *Study) keys() (keys []key) {
	for w := range s.Workloads {
		for p := range s.Periods {
			for _, scenario := range s.Scenarios {
				for _, load := range s.Loads {
					for m := range s.Mappings {
						keys = append(keys, key{w, p, m, load, scenario})
					}
				}
			}
		}
	}
	return keys
}

// Size is how many instances a study has.
func (s *Study) Size() int {
	return len(s.Workloads) * s.Periods * len(s.Scenarios) * len(s.Loads) * s.Mappings
}

// Run plays the instances that done does not hold yet, on so many workers, and
// calls save for each, one call at a time, in no order. It ends with the first
// error, or with ctx; what was saved by then stands.
func (s *Study) Run(ctx context.Context, workers int, done map[int]bool, save func(*Row) error) error {
	if err := s.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keys := s.keys()
	indexes := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range max(1, workers) {
		wg.Go(func() {
			for i := range indexes {
				row, err := s.row(i, keys[i])
				mu.Lock()
				if err == nil && ctx.Err() == nil {
					err = save(row)
				}
				mu.Unlock()
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range keys {
		if !done[i] && ctx.Err() == nil {
			select {
			case indexes <- i:
			case <-ctx.Done():
			}
		}
	}
	close(indexes)
	wg.Wait()
	return context.Cause(ctx)
}

// row plays one instance.
func (s *Study) row(index int, k key) (*Row, error) {
	w := s.Workloads[k.workload]
	setup := s.setup(k.load, k.scenario)
	from, passed, err := w.Draw(&setup, k.period)
	if err != nil {
		return nil, err
	}
	in, err := w.Instance(&setup, from, k.mapping)
	if err != nil {
		return nil, err
	}
	in.obey(s.Rules)
	r := &Row{
		Index: index, Log: w.Name, Scenario: k.scenario, Load: k.load, Period: k.period, Mapping: k.mapping,
		From: from, Jobs: in.Jobs, Users: in.Users, Tasks: len(in.Tasks), Cores: in.Cores, Passed: passed,
		Played: s.Sample > 0 && index%s.Sample == 0,
	}
	if err := s.play(r, in); err != nil {
		return nil, fmt.Errorf("instance %d (%s, period %d, scenario %d, load %v, mapping %d): %w", index, w.Name, k.period, k.scenario, k.load, k.mapping, err)
	}
	return r, nil
}

// obey puts the rules in force.
func (in *Instance) obey(r Rules) {
	in.Params = Params(sched.Default)
	in.Params.Running, in.Params.FixedOrder, in.Home, in.WholeShare = r.Running, r.FixedOrder, r.Home, r.WholeShare
	if r.Reverse {
		slices.Reverse(in.Cores)
		for i := range in.Tasks {
			in.Tasks[i].Site = len(in.Cores) - 1 - in.Tasks[i].Site
		}
	}
}

// play computes φ and lets every policy play the grand coalition.
func (s *Study) play(r *Row, in *Instance) error {
	fair, err := in.Fair(r.Played)
	if err != nil {
		return err
	}
	r.Scale, r.Phi, r.Total = fair.Scale, fair.Phi, fair.Total
	for i, policy := range s.Policies {
		in.Params.Policy = policy
		out, err := Play(&in.Case)
		if err != nil {
			return err
		}
		waits := out.Waits(&in.Case)
		if sum := total(waits); sum != fair.Total {
			return fmt.Errorf("%w: %s waits %d seconds, counted %d", ErrTheorem, policy, sum, fair.Total)
		}
		r.Waits = append(r.Waits, waits)
		if i == 0 {
			r.Home, r.Decisions, r.Events = out.Home, out.Decisions, out.Entries
		}
	}
	return nil
}

func total(waits []int64) (sum int64) {
	for _, w := range waits {
		sum += w
	}
	return sum
}

// Fair counts what every coalition waits and computes φ. If played is set,
// brokers play every coalition, too; a difference is ErrTheorem.
func (c *Case) Fair(played bool) (*Fair, error) {
	v := make([]int64, 1<<len(c.Cores))
	for s := Coalition(1); int(s) < len(v); s++ {
		sub := c.Of(s)
		var err error
		if v[s], err = TotalWait(sub); err != nil {
			return nil, err
		}
		if !played {
			continue
		}
		out, err := Play(sub)
		if err != nil {
			return nil, err
		}
		if sum := total(out.Waits(sub)); sum != v[s] {
			return nil, fmt.Errorf("%w: coalition %b waits %d seconds, counted %d", ErrTheorem, s, sum, v[s])
		}
	}
	return Shapley(v)
}

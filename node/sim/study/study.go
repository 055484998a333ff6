package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// Study is the paper's evaluation: every combination of its logs, periods, loads,
// user mappings and scenarios is an instance, in which every policy plays.
type Study struct {
	Workloads []*sim.Workload `json:"-"`
	Setup     sim.Setup       // Scenario, Load and Cores are the study's
	Periods   int             // of each log
	Mappings  int             // of users to sites, of each period
	Loads     []float64
	Scenarios []sim.Scenario
	Policies  []string
	// Beyond are policies that the paper does not know: they play, too, but get no
	// points. With none there is no ceiling either.
	Beyond []string
	Rules  sim.Rules
	// Sample: of so many instances in which somebody waits, brokers play all
	// coalitions of one, too, compared with the counted ones: chosen by a hash, at
	// least one of each scenario (sample.go). 1 = of all, 0 = of none.
	Sample int
}

// DefaultStudy returns the one of theory.md §5.
func DefaultStudy(workloads ...*sim.Workload) *Study {
	return &Study{
		Workloads: workloads, Setup: sim.DefaultSetup(), Periods: 20, Mappings: 4,
		Loads: []float64{0.5, 0.75, 1, 1.5, 2}, Scenarios: []sim.Scenario{sim.Equal, sim.Zipf, sim.Background},
		Policies: PaperPolicies(), Beyond: sched.Projected(), Sample: 50, // scores count wins over those that take part
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
		return fmt.Errorf("%w: no log", sim.ErrBadCase)
	case s.Periods < 1 || s.Periods > maxPeriods:
		return fmt.Errorf("%w: %d periods, want 1 to %d", sim.ErrBadCase, s.Periods, maxPeriods)
	case s.Mappings < 1 || s.Mappings > maxMappings:
		return fmt.Errorf("%w: %d mappings, want 1 to %d", sim.ErrBadCase, s.Mappings, maxMappings)
	case len(s.Loads) == 0 || len(s.Loads) > maxLoads || len(s.Scenarios) == 0 || len(s.Policies) == 0 || s.Sample < 0:
		return fmt.Errorf("%w: %d loads, %d scenarios, %d policies and a sample of one in %d, want at least one of each and at most 100 loads, 0 for no sample", sim.ErrBadCase, len(s.Loads), len(s.Scenarios), len(s.Policies), s.Sample)
	}
	if err := s.distinct(); err != nil {
		return err
	}
	for _, load := range s.Loads {
		for _, scenario := range s.Scenarios {
			setup := s.setup(load, scenario)
			if err := setup.Validate(); err != nil {
				return err
			}
		}
	}
	for _, p := range append(slices.Clone(s.Policies), s.Beyond...) {
		if _, err := sched.New(p, s.Rules.Running); err != nil {
			return fmt.Errorf("%w: %w", sim.ErrBadCase, err)
		}
	}
	return nil
}

// distinct refuses what is listed twice: it would count twice.
func (s *Study) distinct() error {
	named, same := map[string]bool{}, map[string]string{}
	for _, w := range s.Workloads {
		if named[w.Name] {
			return fmt.Errorf("%w: two logs are called %s: rename one", sim.ErrBadCase, w.Name)
		}
		if other, ok := same[w.SHA256]; ok {
			return fmt.Errorf("%w: the logs %s and %s are the same: leave one out", sim.ErrBadCase, other, w.Name)
		}
		named[w.Name], same[w.SHA256] = true, w.Name
	}
	if v, ok := twice(s.Scenarios); ok {
		return fmt.Errorf("%w: scenario %d is listed twice", sim.ErrBadCase, v)
	}
	if v, ok := twice(s.Loads); ok {
		return fmt.Errorf("%w: load %v is listed twice", sim.ErrBadCase, v)
	}
	if v, ok := twice(append(slices.Clone(s.Policies), s.Beyond...)); ok {
		return fmt.Errorf("%w: policy %s is listed twice", sim.ErrBadCase, v)
	}
	return nil
}

// twice returns the first value that has occurred before.
func twice[T comparable](values []T) (again T, ok bool) {
	seen := map[T]bool{}
	for _, v := range values {
		if seen[v] {
			return v, true
		}
		seen[v] = true
	}
	return again, false
}

func (s *Study) setup(load float64, scenario sim.Scenario) sim.Setup {
	setup := s.Setup
	setup.Load, setup.Scenario, setup.Cores = load, scenario, 0
	return setup
}

// studyCode is raised when the same study has other results than before.
const studyCode = 7

// Mark names a study forever: another one has another, and so other results.
func (s *Study) Mark() string {
	var logs []string
	for _, w := range s.Workloads {
		logs = append(logs, w.Name, w.SHA256)
	}
	text, err := json.Marshal(struct {
		Study *Study
		Logs  []string
		Code  int
	}{s, logs, studyCode})
	if err != nil {
		panic("a study does not encode: " + err.Error()) // numbers and names only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Row is the result of one instance. Waits are seconds.
type Row struct {
	Index              int
	Log                string
	Scenario           sim.Scenario
	Load               float64
	Period, Mapping    int
	From               int64
	Jobs, Users, Tasks int
	Cores              []int64
	Passed             int // starts of the period that were passed over: too few users
	Scale              int64
	Phi                []int64   // φ·Scale by site
	Total              int64     // v(N)
	Waits              [][]int64 // by policy, by site
	Played             bool      // all coalitions were played by brokers, too
	TooWide            int       `json:",omitempty"` // jobs left out: wider than every site
	// of all contestants: one for unit tasks, one for each Weight of jobs as they are
	Yardsticks              []Yardstick `json:",omitempty"`
	Home, Decisions, Events uint64      // of the first policy's run
}

// Fair returns the instance's φ.
func (r *Row) Fair() *sim.Fair { return &sim.Fair{Scale: r.Scale, Phi: r.Phi, Total: r.Total} }

// key is an instance's place in a study.
type key struct {
	workload, period, mapping int
	load                      float64
	scenario                  sim.Scenario
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

// Size returns how many instances a study has.
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
	keys := s.keys()
	sample, err := s.sample(ctx, keys)
	if err != nil {
		return err
	}
	return each(ctx, workers, keys, done, func(ctx context.Context, i int) (*Row,
		error,
	) {
		return s.row(ctx, i, keys[i], sample(i))
	}, save)
}

// each plays the instances that done does not hold, on so many workers, and calls
// save for each, one call at a time.
func each[T any](ctx context.Context, workers int, keys []key, done map[int]bool,
	play func(context.Context, int) (T, error), save func(T) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	indexes := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range max(1, workers) {
		wg.Go(func() {
			for i := range indexes {
				result, err := play(ctx, i)
				mu.Lock()
				if err == nil && ctx.Err() == nil {
					err = save(result)
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

// row plays one instance; if it is in the sample and somebody waits in it, all
// coalitions, too.
func (s *Study) row(ctx context.Context, index int, k key, sampled bool) (*Row, error) {
	in, passed, err := s.instance(k)
	if err != nil {
		return nil, err
	}
	name := s.Workloads[k.workload].Name
	r := &Row{
		Index: index, Log: name, Scenario: k.scenario, Load: k.load, Period: k.period, Mapping: k.mapping,
		From: in.From, Jobs: in.Jobs, Users: in.Users, Tasks: len(in.Tasks), Cores: in.Cores, Passed: passed,
	}
	if err := s.play(ctx, r, in, sampled); err != nil {
		return nil, fmt.Errorf("instance %d (%s, period %d, scenario %d, load %v, mapping %d): %w", index, name, k.period, k.scenario, k.load, k.mapping, err)
	}
	return r, nil
}

// instance draws an instance and puts the study's rules in force; it also returns
// how many starts of its period were passed over.
func (s *Study) instance(k key) (*sim.Instance, int, error) {
	w := s.Workloads[k.workload]
	setup := s.setup(k.load, k.scenario)
	from, passed, err := w.Draw(&setup, k.period)
	if err != nil {
		return nil, 0, err
	}
	in, err := w.Instance(&setup, from, k.mapping)
	if err != nil {
		return nil, 0, err
	}
	in.Obey(s.Rules)
	return in, passed, nil
}

// play computes φ and lets every policy play the grand coalition.
func (s *Study) play(ctx context.Context, r *Row, in *sim.Instance, sampled bool) error {
	if s.Setup.Unit == 0 {
		return s.playAsTheyAre(ctx, r, in)
	}
	v, err := in.Counted()
	if err != nil {
		return err
	}
	fair, err := sim.Shapley(v)
	if err != nil {
		return err
	}
	r.Scale, r.Phi, r.Total = fair.Scale, fair.Phi, fair.Total
	if r.Played = sampled && r.Total > 0; r.Played {
		if err := in.CheckCounted(ctx, v); err != nil {
			return err
		}
	}
	for i, policy := range s.Policies {
		in.Params.Policy = policy
		out, err := sim.PlayContext(ctx, &in.Case)
		if err != nil {
			return err
		}
		waits := out.Waits(&in.Case)
		if sum := sim.Sum(waits); sum != fair.Total {
			return fmt.Errorf("%w: %s waits %d seconds, counted %d", sim.ErrTheorem, policy, sum, fair.Total)
		}
		r.Waits = append(r.Waits, waits)
		if i == 0 {
			r.Home, r.Decisions, r.Events = out.Home, out.Decisions, out.Entries
		}
	}
	return s.playYardsticks(ctx, r, in, fair)
}

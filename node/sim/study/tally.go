package study

import (
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// Tally sums up the rows of a study, or of a part of it.
type Tally struct {
	Policies  []string
	Instances int
	// Unwaited are the instances in which nobody had to wait: they give no points
	// and are in no mean and no median.
	Unwaited int
	Scores   []int   // by policy
	Beats    [][]int // [a][b]: instances in which a was strictly fairer than b
	// Distance is L1/v(N), Excess (L1 − floor)/v(N), both by policy.
	Distance, Excess []Spread
	// blocks are the scores of each block; see Noise.
	blocks map[block][]int
}

// Spread sums up one number of many instances.
type Spread struct {
	Mean, Median float64
	values       []float64
}

// summarize computes mean and median; of no values both are 0.
func (s *Spread) summarize() {
	n := len(s.values)
	if n == 0 {
		return
	}
	sum := 0.0
	for _, v := range s.values {
		sum += v
	}
	slices.Sort(s.values)
	s.Mean, s.Median, s.values = sum/float64(n), (s.values[(n-1)/2]+s.values[n/2])/2, nil
}

// TallyOf sums up the rows that which accepts (nil: all), by a norm.
func TallyOf(rows []*Row, policies []string, norm sim.Norm, which func(*Row) bool) *Tally {
	n := len(policies)
	t := &Tally{
		Policies: policies, Scores: make([]int, n), Distance: make([]Spread, n), Excess: make([]Spread, n),
		blocks: map[block][]int{},
	}
	for range n {
		t.Beats = append(t.Beats, make([]int, n))
	}
	for _, r := range rows {
		if which == nil || which(r) {
			t.add(r, norm)
		}
	}
	for i := range n {
		t.Distance[i].summarize()
		t.Excess[i].summarize()
	}
	return t
}

func (t *Tally) add(r *Row, norm sim.Norm) {
	t.Instances++
	b := block{r.Log, r.Period}
	if t.blocks[b] == nil {
		t.blocks[b] = make([]int, len(t.Policies))
	}
	if r.Total == 0 {
		t.Unwaited++
		return
	}
	fair := r.Fair()
	unfair := make([]sched.Int128, len(t.Policies))
	whole := float64(fair.Total) * float64(fair.Scale)
	for i := range t.Policies {
		unfair[i] = fair.Unfairness(r.Waits[i], norm)
		l1 := fair.L1(r.Waits[i])
		t.Distance[i].values = append(t.Distance[i].values, float64(l1)/whole)
		t.Excess[i].values = append(t.Excess[i].values, float64(l1-fair.Floor())/whole)
	}
	for i, score := range sim.Scores(unfair) {
		t.Scores[i] += score
		t.blocks[b][i] += score
		for k := range unfair {
			if unfair[i].Cmp(unfair[k]) < 0 {
				t.Beats[i][k]++
			}
		}
	}
}

// Shares returns the scores as shares of their sum.
func (t *Tally) Shares() []float64 { return sharesOf(t.Scores, nil) }

// sharesOf returns scores as shares of their sum; without is taken away before.
func sharesOf(scores, without []int) []float64 {
	left, sum := slices.Clone(scores), 0
	for i := range left {
		if without != nil {
			left[i] -= without[i]
		}
		sum += left[i]
	}
	shares := make([]float64, len(left))
	for i, s := range left {
		if sum > 0 {
			shares[i] = float64(s) / float64(sum)
		}
	}
	return shares
}

// Wins counts the comparisons in which the policy was strictly fairer.
func (t *Tally) Wins(i int) int { return t.Scores[i] }

// Losses counts the comparisons in which another policy was strictly fairer.
func (t *Tally) Losses(i int) (n int) {
	for k := range t.Beats {
		n += t.Beats[k][i]
	}
	return n
}

// PaperPolicies returns those of Table 1, in its order.
func PaperPolicies() []string {
	return []string{sched.OrigDirect, sched.RelDirect, sched.SimplDirect, sched.FairShare, sched.RoundRobin}
}

// paperScores is Table 1 of the paper, by policy, for scenarios 1 to 3.
var paperScores = map[string][3]int{
	sched.OrigDirect: {3051, 3095, 2110}, sched.RelDirect: {3840, 3793, 2420}, sched.SimplDirect: {4061, 3955, 2415},
	sched.FairShare: {3108, 3436, 1621}, sched.RoundRobin: {1302, 917, 871},
}

// paper returns a policy's score in the paper and its share of the column; false
// for a policy that the paper does not know.
func paper(policy string, scenario sim.Scenario) (score int, share float64, ok bool) {
	column, sum := int(scenario-sim.Equal), 0
	for _, s := range paperScores { // a sum has no order
		sum += s[column]
	}
	s, ok := paperScores[policy]
	return s[column], float64(s[column]) / float64(sum), ok
}

// distinct returns the values of a field, in the order of the study.
func distinct[T comparable](rows []*Row, field func(*Row) T) (values []T) {
	for _, r := range rows {
		if v := field(r); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// Score is one cell of Table 1.
type Score struct {
	Scenario sim.Scenario `json:"scenario"`
	Policy   string       `json:"policy"`
	Score    int          `json:"score"`
	Share    float64      `json:"share"`
	Paper    float64      `json:"paper_share"` // 0 for a policy that the paper does not know
	Losses   int          `json:"losses"`
	// Means and medians of the instances in which somebody waits.
	Distance       float64 `json:"l1_over_v"`
	DistanceMedian float64 `json:"l1_over_v_median"`
	Excess         float64 `json:"excess_over_v"`
	ExcessMedian   float64 `json:"excess_over_v_median"`
}

// Scores returns the table that the paper shows.
func (p *Report) Scores() (scores []Score) {
	for _, scenario := range distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario }) {
		t := TallyOf(p.Rows, p.Study.Policies, sim.L1, func(r *Row) bool { return r.Scenario == scenario })
		for i, policy := range t.Policies {
			s := Score{
				Scenario: scenario, Policy: policy, Score: t.Scores[i], Share: t.Shares()[i], Losses: t.Losses(i),
				Distance: t.Distance[i].Mean, DistanceMedian: t.Distance[i].Median, Excess: t.Excess[i].Mean,
				ExcessMedian: t.Excess[i].Median,
			}
			if _, share, ok := paper(policy, scenario); ok {
				s.Paper = share
			}
			scores = append(scores, s)
		}
	}
	return scores
}

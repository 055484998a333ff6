package study

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// contest compares two contestants on one yardstick.
type contest struct {
	yardstick int
	// distance is what is compared: the L1 distance or the undeserved wait.
	distance func(*sim.Fair, []int64) int64
	// closer: a difference of less than one hundredth of v(N) is a tie. Of unequal jobs
	// such ones come from where a long job happened to start, not from the policy.
	closer bool
}

// duel is contestant a against b on the rows that which accepts.
func (c contest) duel(rows []*Row, a, b int, which func(*Row) bool) *Duel {
	d := &Duel{}
	for _, r := range rows {
		if which(r) && len(r.Yardsticks) > c.yardstick && r.Yardsticks[c.yardstick].Total > 0 {
			d.add(r, c.compare(r, a, b))
		}
	}
	return d
}

func (c contest) compare(r *Row, a, b int) int {
	y := &r.Yardsticks[c.yardstick]
	fair := y.fair(r.Scale)
	x, z := c.distance(fair, y.Waits[a]), c.distance(fair, y.Waits[b])
	if c.closer && max(x-z, z-x)/r.Scale < y.Total/100 {
		return 0
	}
	return cmp.Compare(x, z)
}

// beyond writes what the policies beyond the paper came to on unit tasks, and the
// ceiling.
func (p *Report) beyond(w *page, scenario sim.Scenario) {
	if len(p.Study.Beyond) == 0 {
		return
	}
	w.line("")
	w.line("### Beyond the paper, scenario %d", scenario)
	w.line("")
	w.line("Instances in which the row is fairer : in which the column is = their ratio (where it would lie in 95 of 100 draws of other periods; a block")
	w.line("bootstrap over the periods of each log). The last row is no policy: it serves as SHAPLEY does, but knows φ of the end.")
	w.line("")
	w.head(append(append([]string{"scenario, log", "policy"}, p.Study.Policies...), "mean (L1 − floor)/v(N)")...)
	in := func(r *Row) bool { return r.Scenario == scenario }
	p.eachLog(in, func(name string, which func(*Row) bool) { p.duels(w, fmt.Sprintf("%d, %s", scenario, name), which) })
}

// eachLog visits all rows that in accepts, then those of each log, if there are
// several.
func (p *Report) eachLog(in func(*Row) bool, visit func(name string, which func(*Row) bool)) {
	visit("all", in)
	logs := distinct(p.Rows, func(r *Row) string { return r.Log })
	for _, log := range logs {
		if len(logs) > 1 {
			visit(log, func(r *Row) bool { return in(r) && r.Log == log })
		}
	}
}

// duels writes the rows of beyond for some instances.
func (p *Report) duels(w *page, name string, which func(*Row) bool) {
	s := p.Study
	for i, contestant := range s.contestants()[len(s.Policies):] {
		cells := []string{name, contestant}
		for k := range s.Policies {
			cells = append(cells, contest{distance: (*sim.Fair).L1}.duel(p.Rows, len(s.Policies)+i, k, which).String())
		}
		w.row(append(cells, fmt.Sprintf("%.4f", p.excess(len(s.Policies)+i, which)))...)
	}
}

// excess returns a contestant's mean (L1 − floor)/v(N) on unit tasks, where somebody waits.
func (p *Report) excess(contestant int, which func(*Row) bool) float64 {
	sum, n := 0.0, 0
	for _, r := range p.Rows {
		if which(r) && r.Total > 0 {
			fair := r.Fair()
			sum += float64(fair.L1(r.Yardsticks[0].Waits[contestant])-fair.Floor()) /
				(float64(fair.Total) * float64(fair.Scale))
			n++
		}
	}
	return sum / max(1, float64(n))
}

// asTheyAre is the report on jobs as they are: of any width and length.
func (p *Report) asTheyAre(w *page) {
	s := p.Study
	w.line("# Fairness on jobs as they are: real widths and lengths")
	w.line("")
	w.line("    %s", p.Command)
	w.line("")
	w.line("Study %s (study code %d), seed %d: %d of %d instances. %d sites, periods of %d s, Zipf exponent %v, background share %v;", s.Mark(), studyCode, s.Setup.Seed,
		len(p.Rows), s.Size(), s.Setup.Sites, s.Setup.Period, s.Setup.Exponent, s.Setup.BackgroundShare)
	w.line("%s. %d jobs wider than every site they could run at were left out.", s.Rules, p.tooWide())
	w.line("")
	w.line("φ is of v(S) = the wait of coalition S by itself, first come, first served, under the same rules; a job wider than its largest site runs there")
	w.line("on all cores, for as much longer. With unequal jobs the total wait depends on the policy. So beside the L1 distance, which")
	w.line("is less for a policy that makes a site wait longer if it waits less than its share, stands the undeserved wait Σ max(0, wait − φ): of equal")
	w.line("tasks it is half the L1 distance. `closer`: what differs by less than 1 %% of v(N) is a tie. The last three of each table are no policies: they know")
	w.line("what nobody can know, two all lengths, the last φ of the end by the table's own yardstick.")
	w.line("")
	p.logs(w)
	for _, weight := range sim.Weights() {
		p.weighed(w, weight)
	}
	p.evidence(w)
}

func (p *Report) tooWide() (n int) {
	for _, r := range p.Rows {
		n += r.TooWide
	}
	return n
}

// weighed writes one weight's table.
func (p *Report) weighed(w *page, weight sim.Weight) {
	s := p.Study
	base := p.base()
	w.line("")
	w.line("## Measured by %s", weight)
	w.line("")
	w.line("Against %s: fairer : less fair = ratio (95 %%, block bootstrap over periods). Total: the mean of a policy's total over v(N).", s.Policies[base])
	w.line("")
	w.head("scenario, log", "policy", "L1", "undeserved", "undeserved, closer", "total")
	part := func(name string, which func(*Row) bool) {
		for i, contestant := range s.contestants() {
			if i == base {
				continue
			}
			cells := []string{name, contestant}
			for _, c := range []contest{
				{int(weight), (*sim.Fair).L1, false},
				{int(weight), (*sim.Fair).Undeserved, false},
				{int(weight), (*sim.Fair).Undeserved, true},
			} {
				cells = append(cells, c.duel(p.Rows, i, base, which).String())
			}
			w.row(append(cells, fmt.Sprintf("%.3f", p.meanTotal(int(weight), i, which)))...)
		}
	}
	for _, scenario := range distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario }) {
		p.eachLog(func(r *Row) bool { return r.Scenario == scenario }, func(name string, which func(*Row) bool) {
			part(fmt.Sprintf("%d, %s", scenario, name), which)
		})
	}
}

// meanTotal returns the mean of a contestant's total wait over v(N).
func (p *Report) meanTotal(yardstick, contestant int, which func(*Row) bool) float64 {
	sum, n := 0.0, 0
	for _, r := range p.Rows {
		if y := &r.Yardsticks[yardstick]; which(r) && y.Total > 0 {
			sum += float64(sim.Sum(y.Waits[contestant])) / float64(y.Total)
			n++
		}
	}
	return sum / max(1, float64(n))
}

// Verdict is in how many instances a policy was fairer than another, by undeserved
// wait.
type Verdict struct {
	Yardstick string       `json:"yardstick"`
	Scenario  sim.Scenario `json:"scenario"`
	Policy    string       `json:"policy"`
	Than      string       `json:"than"`
	Wins      int          `json:"wins"`
	Losses    int          `json:"losses"`
	Ratio     string       `json:"ratio"` // and where it would lie in 95 of 100 draws of other periods
}

// Verdicts compares all contestants with the default policy, on every yardstick.
func (p *Report) Verdicts() (verdicts []Verdict) {
	base := p.base()
	for _, weight := range sim.Weights() {
		for _, scenario := range distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario }) {
			for i, contestant := range p.Study.contestants() {
				if i == base {
					continue
				}
				d := contest{int(weight), (*sim.Fair).Undeserved, false}.duel(p.Rows, i, base,
					func(r *Row) bool { return r.Scenario == scenario })
				verdicts = append(verdicts, Verdict{
					weight.String(), scenario, contestant, p.Study.Policies[base],
					d.Wins, d.Losses, d.odds(),
				})
			}
		}
	}
	return verdicts
}

// base returns the policy that others are compared with: the default, or the first.
func (p *Report) base() int { return max(0, slices.Index(p.Study.Policies, sched.Default)) }

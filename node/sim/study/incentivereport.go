package study

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/cloudshare/cloudshare/node/sim"
)

// IncentiveReport sums up gains.
type IncentiveReport struct {
	Study   *Study
	Liars   int // in each instance
	Gains   []Gain
	Command string
}

// sorted puts gains into one order, whatever the order of work.
func (r *IncentiveReport) sorted() []Gain {
	gains := slices.Clone(r.Gains)
	slices.SortStableFunc(gains, func(a, b Gain) int {
		return cmp.Or(cmp.Compare(a.Log, b.Log), cmp.Compare(a.Period, b.Period), cmp.Compare(a.Lie, b.Lie),
			cmp.Compare(a.Policy, b.Policy),
			cmp.Compare(a.Own, b.Own), cmp.Compare(a.OwnLying, b.OwnLying), cmp.Compare(a.Others, b.Others),
			cmp.Compare(a.OthersLying, b.OthersLying))
	})
	return gains
}

// policies returns those that played.
func (r *IncentiveReport) policies() []string {
	return append(slices.Clone(r.Study.Policies), r.Study.Beyond...)
}

// LiePolicy is what a lie brings under a policy.
type LiePolicy struct {
	Lie    string `json:"lie"`
	Policy string `json:"policy"`
	// Own and Others are by how much the liars' and the others' waits change, as
	// parts of what they are when all are honest, over all instances. Below 0 they
	// wait less.
	Own    float64 `json:"own_change"`
	Others float64 `json:"others_change"`
	// Better and Worse count the instances in which the liars wait less and more.
	Better int    `json:"better"`
	Worse  int    `json:"worse"`
	Ratio  string `json:"ratio"` // of these, and where it would lie in 95 of 100 draws of other periods
}

// Table returns what each lie brings under each policy.
func (r *IncentiveReport) Table() (table []LiePolicy) {
	gains := r.sorted()
	for l, lie := range sim.Lies() {
		for p, policy := range r.policies() {
			var d Duel
			var sums [4]float64
			for _, g := range gains {
				if g.Lie != l || g.Policy != p {
					continue
				}
				d.add(&Row{Log: g.Log, Period: g.Period}, cmp.Compare(g.OwnLying, g.Own))
				for i, v := range [...]int64{g.Own, g.OwnLying, g.Others, g.OthersLying} {
					sums[i] += float64(v)
				}
			}
			table = append(table, LiePolicy{
				lie.Name, policy, change(sums[0], sums[1]), change(sums[2], sums[3]),
				d.Wins, d.Losses, d.odds(),
			})
		}
	}
	return table
}

func change(before, after float64) float64 {
	if before == 0 {
		return 0
	}
	return after/before - 1
}

// Markdown writes the report for people. The same gains give the same bytes.
func (r *IncentiveReport) Markdown(dst io.Writer) error {
	w := &page{Writer: bufio.NewWriter(dst)}
	s := r.Study
	w.line("# What a site gains by lying")
	w.line("")
	w.line("    %s", r.Command)
	w.line("")
	w.line("%d instances, seed %d: %d sites, periods of %d s, loads %v, scenarios %v, %s. In each %d of the sites lie, drawn among those that have tasks.", s.Size(),
		s.Setup.Seed, s.Setup.Sites, s.Setup.Period, s.Loads, s.Scenarios, unitWords(s.Setup.Unit), r.Liars)
	w.line("How much longer (+) or shorter (−) their tasks wait in all than if they were honest; in brackets the instances in which they wait less : more.")
	w.line("Waits count by work, cores · seconds, so that parts weigh as much as the whole; the parts of a split task wait from when the whole would run them.")
	r.table(w, "The liars", func(e *LiePolicy) string { return fmt.Sprintf("%+.1f %% (%d : %d)", 100*e.Own, e.Better, e.Worse) })
	r.table(w, "All others", func(e *LiePolicy) string { return fmt.Sprintf("%+.1f %%", 100*e.Others) })
	return w.Flush()
}

// table writes one cell for each lie and policy.
func (r *IncentiveReport) table(w *page, title string, cell func(*LiePolicy) string) {
	w.line("")
	w.line("## %s", title)
	w.line("")
	w.head(append([]string{"lie"}, r.policies()...)...)
	table, n := r.Table(), len(r.policies())
	for l, lie := range sim.Lies() {
		cells := []string{lie.Name}
		for i := range n {
			cells = append(cells, cell(&table[l*n+i]))
		}
		w.row(cells...)
	}
}

func unitWords(unit int64) string {
	if unit == 0 {
		return "jobs as they are"
	}
	return "unit tasks of " + strconv.FormatInt(unit, 10) + " s"
}

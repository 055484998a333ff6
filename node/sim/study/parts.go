package study

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/node/sim"
)

// ways says what was counted and what was played, and where.
func (p *Report) ways(w *page) {
	w.line("Every policy's schedule was played by one broker core a site, the state machine and its policy, in every instance.")
	w.line("What coalitions wait was counted by the theorem of equal tasks. It is checked: in every instance the grand coalition's")
	w.line("count against every policy's schedule; where the table says so, brokers also played every coalition, under the default policy: no difference.")
	w.line("Those instances are chosen by a hash, and only where somebody waits (column `played` of the CSV).")
	w.line("")
	w.head("scenario, log", "instances", "nobody waits", "coalitions counted", "counted and played", "of these by load")
	for _, scenario := range distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario }) {
		for _, log := range distinct(p.Rows, func(r *Row) string { return r.Log }) {
			p.way(w, fmt.Sprintf("%d, %s", scenario, log), func(r *Row) bool { return r.Scenario == scenario && r.Log == log })
		}
	}
	w.line("")
	if len(p.Variants) > 0 {
		all, played := 0, 0
		for _, v := range p.Variants {
			all, played = all+len(v.Rows), played+count(v.Rows, func(r *Row) bool { return r.Played })
		}
		w.line("Of the %d instances of the sensitivity table, %d were counted and played.", all, played)
		w.line("")
	}
}

// way writes which way was used in a part of the study.
func (p *Report) way(w *page, name string, in func(*Row) bool) {
	played := func(r *Row) bool { return in(r) && r.Played }
	var loads []string
	for _, load := range p.Study.Loads {
		if n := count(p.Rows, func(r *Row) bool { return played(r) && r.Load == load }); n > 0 {
			loads = append(loads, fmt.Sprintf("%v: %d", load, n))
		}
	}
	all, idle := count(p.Rows, in), count(p.Rows, func(r *Row) bool { return in(r) && r.Total == 0 })
	w.row(name, strconv.Itoa(all), strconv.Itoa(idle), strconv.Itoa(all), strconv.Itoa(count(p.Rows, played)),
		dash(strings.Join(loads, ", ")))
}

func count(rows []*Row, which func(*Row) bool) (n int) {
	for _, r := range rows {
		if which(r) {
			n++
		}
	}
	return n
}

// measures returns a policy's wins, losses and distances, for a table.
func (t *Tally) measures(i int) []string {
	cells := []string{fmt.Sprintf("%d : %d", t.Wins(i), t.Losses(i))}
	for _, s := range []Spread{t.Distance[i], t.Excess[i]} {
		cells = append(cells, fmt.Sprintf("%.4f", s.Mean), fmt.Sprintf("%.4f", s.Median))
	}
	return cells
}

// parts writes what every policy came to, by log and by load.
func (p *Report) parts(w *page) {
	w.line("")
	w.line("## By log and load")
	w.line("")
	w.line("Instances are those in which somebody waits, of all.")
	w.line("")
	w.head("scenario, part", "instances", "policy", "score", "share", "wins : losses", "mean L1/v(N)", "median", "mean (L1 − floor)/v(N)", "median")
	p.eachPart(func(name string, which func(*Row) bool) {
		t := TallyOf(p.Rows, p.Study.Policies, sim.L1, which)
		waited := fmt.Sprintf("%d of %d", t.Instances-t.Unwaited, t.Instances)
		for i, policy := range t.Policies {
			w.row(append([]string{name, waited, policy, strconv.Itoa(t.Scores[i]), fmt.Sprintf("%.3f", t.Shares()[i])},
				t.measures(i)...)...)
		}
	})
}

// eachPart walks through scenario × (log, then load).
func (p *Report) eachPart(visit func(name string, which func(*Row) bool)) {
	for _, scenario := range distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario }) {
		for _, log := range distinct(p.Rows, func(r *Row) string { return r.Log }) {
			visit(fmt.Sprintf("%d, %s", scenario, log), func(r *Row) bool { return r.Scenario == scenario && r.Log == log })
		}
		for _, load := range distinct(p.Rows, func(r *Row) float64 { return r.Load }) {
			visit(fmt.Sprintf("%d, load %v", scenario, load), func(r *Row) bool { return r.Scenario == scenario && r.Load == load })
		}
	}
}

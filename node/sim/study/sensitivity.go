package study

import (
	"fmt"
	"strconv"

	"github.com/cloudshare/cloudshare/node/sim"
)

// sensitivity writes what other choices would change.
func (p *Report) sensitivity(w *page) {
	w.line("")
	w.line("## Sensitivity to what the paper leaves open")
	w.line("")
	w.line("Shares of the scores; in brackets mean (L1 − floor)/v(N). The norm costs no new runs, so it is that of all")
	w.line("instances. Other choices were played on a part of them, whose row by the study's own choice stands first; a choice's")
	w.line("shares are followed by their change against that row, behind ± twice the standard error of the change over periods of logs.")
	w.line("A change within its ± may well be chance.")
	for _, scenario := range distinct(p.Rows, func(r *Row) sim.Scenario { return r.Scenario }) {
		w.line("")
		w.line("Scenario %d:", scenario)
		w.line("")
		w.head(append([]string{"choice", "instances"}, p.Study.Policies...)...)
		in := func(r *Row) bool { return r.Scenario == scenario }
		p.norms(w, in)
		p.choices(w, in)
	}
}

// norms writes a row for each distance.
func (p *Report) norms(w *page, in func(*Row) bool) {
	for _, norm := range []sim.Norm{sim.L1, sim.L2, sim.LMax} {
		t := TallyOf(p.Rows, p.Study.Policies, norm, in)
		cells := []string{"norm " + norm.String(), strconv.Itoa(t.Instances)}
		for _, share := range t.Shares() {
			cells = append(cells, fmt.Sprintf("%.3f", share))
		}
		w.row(cells...)
	}
}

// choices writes the study's own choice and each other one.
func (p *Report) choices(w *page, in func(*Row) bool) {
	var own *Tally
	for _, v := range p.Variants {
		t := TallyOf(v.Rows, p.Study.Policies, sim.L1, in)
		if t.Instances == 0 {
			continue
		}
		if own == nil { // all choices of a scenario are played on the same part
			own = TallyOf(p.Rows, p.Study.Policies, sim.L1, func(r *Row) bool { return in(r) && v.Study.shares(r) })
			w.row(own.against("the study's own", nil)...)
		}
		w.row(t.against(v.Name, own)...)
	}
}

// against returns a choice's line, compared with another one if that is given.
func (t *Tally) against(name string, own *Tally) []string {
	cells := []string{name, strconv.Itoa(t.Instances)}
	noise := t.NoiseAgainst(own)
	for i, share := range t.Shares() {
		cell := fmt.Sprintf("%.3f (%.4f)", share, t.Excess[i].Mean)
		if own != nil {
			cell += fmt.Sprintf(", %+.3f ± %.3f", share-own.Shares()[i], noise[i])
		}
		cells = append(cells, cell)
	}
	return cells
}

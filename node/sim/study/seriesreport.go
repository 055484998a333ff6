package study

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Markdown writes the report for people. The same rows give the same bytes.
func (p *SeriesReport) Markdown(dst io.Writer) error {
	w := &page{Writer: bufio.NewWriter(dst)}
	p.about(w)
	p.plan(w)
	all := p.Versus()
	for _, scenario := range p.Series.Study.Scenarios {
		p.scenario(w, all, scenario)
	}
	return w.Flush()
}

func (p *SeriesReport) about(w *page) {
	s := p.Series.Study
	w.line("# How much fairer, over logs and seeds")
	w.line("")
	w.line("    %s", p.Command)
	w.line("")
	w.line("Study code %d. %d logs, each by itself, seeds 1 to %d. %d sites, periods of %d s, unit tasks of %d s, loads %v, %d user mappings, Zipf exponent %v,",
		studyCode, len(s.Workloads), p.Series.Seeds, s.Setup.Sites, s.Setup.Period, s.Setup.Unit, s.Loads, s.Mappings,
		s.Setup.Exponent)
	w.line("background share %v; %s.", s.Setup.BackgroundShare, s.Rules)
	w.line("")
	w.line("A cell: in how many instances the row is fairer : less fair than the column = their ratio (95 %% interval). **logs**, **seeds**: the least and the greatest")
	w.line("ratio of one log, all its seeds together, and of one seed, all logs together. The interval is a bootstrap of two levels, 2000 draws: logs with replacement,")
	w.line("then as many (seed, period) of each as it has, each with all its instances. Logs with more periods weigh more. ∞: nothing lost; –: nothing decided.")
	w.line("")
}

// plan says how much of each log was played.
func (p *SeriesReport) plan(w *page) {
	w.head("log", "periods a seed", "unit tasks a period, mean", "instances", "somebody waits", "sha256 (uncompressed)")
	var order []string
	played, waited, studies := map[string]int{}, map[string]int{}, map[string]*Study{}
	for i := range p.Parts {
		part := &p.Parts[i]
		name := part.Study.Workloads[0].Name
		if studies[name] == nil {
			order, studies[name] = append(order, name), part.Study
		}
		for _, r := range part.Rows {
			played[name]++
			if r.Total > 0 {
				waited[name]++
			}
		}
	}
	for _, name := range order {
		s := studies[name]
		log := s.Workloads[0]
		mean := log.UnitTasks(s.Setup.Unit) * s.Setup.Period / (log.Span() + 1)
		w.row(name, strconv.Itoa(s.Periods), strconv.FormatInt(mean, 10), strconv.Itoa(played[name]),
			strconv.Itoa(waited[name]), "`"+log.SHA256+"`")
	}
}

// scenario writes one table.
func (p *SeriesReport) scenario(w *page, all []Versus, scenario sim.Scenario) {
	s := p.Series.Study
	w.line("")
	w.line("## Scenario %d", scenario)
	w.line("")
	w.head(append([]string{"policy", ""}, s.Policies...)...)
	for _, policy := range s.Beyond {
		together, logs, seeds := []string{policy, "all"}, []string{"", "logs"}, []string{"", "seeds"}
		for _, v := range all {
			if v.Scenario == scenario && v.Policy == policy {
				together = append(together, fmt.Sprintf("%d : %d = %s (%s)", v.Wins, v.Losses, v.Ratio, v.Interval))
				logs, seeds = append(logs, v.Logs), append(seeds, v.Seeds)
			}
		}
		w.row(together...)
		w.row(logs...)
		w.row(seeds...)
	}
	p.byLog(w, scenario)
}

// byLog writes the duels of each log, all its seeds together.
func (p *SeriesReport) byLog(w *page, scenario sim.Scenario) {
	s, rows := p.Series.Study, p.rows()
	w.line("")
	w.line("Each log by itself, all its seeds:")
	w.line("")
	w.head(append([]string{"log", "policy"}, s.Policies...)...)
	for _, log := range distinct(rows, func(r *Row) string { return r.Log }) {
		for i, policy := range s.Beyond {
			cells := []string{log, policy}
			for k := range s.Policies {
				in := func(r *Row) bool { return r.Scenario == scenario && r.Log == log }
				cells = append(cells, contest{distance: (*sim.Fair).L1}.duel(rows, len(s.Policies)+i, k, in).String())
			}
			w.row(cells...)
		}
	}
}

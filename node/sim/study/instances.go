package study

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/cloudshare/cloudshare/node/sim"
)

// CSV writes one line per instance and policy, also of those that get no points
// and have no score; of jobs as they are, one for each weight.
func (p *Report) CSV(dst io.Writer) error {
	w := csv.NewWriter(dst)
	_ = w.Write([]string{ // an error stays for Error
		"log", "scenario", "load", "period", "mapping", "from", "jobs", "users", "tasks", "cores", "played",
		"policy", "total_wait_s", "l1_s", "floor_s", "score", "phi_s", "waits_s", "weight",
	})
	for _, r := range p.Rows {
		if p.Study.Setup.Unit > 0 {
			t := TallyOf([]*Row{r}, p.Study.Policies, sim.L1, nil)
			for i, policy := range p.Study.Policies {
				_ = w.Write(r.line(policy, r.Fair(), r.Waits[i], strconv.Itoa(t.Scores[i]), sim.ByTask))
			}
		}
		for weight := range r.Yardsticks {
			p.lines(w, r, weight)
		}
	}
	w.Flush()
	return w.Error()
}

// lines writes what one yardstick measured of those without points.
func (p *Report) lines(w *csv.Writer, r *Row, weight int) {
	y := &r.Yardsticks[weight]
	for i, contestant := range p.Study.contestants() {
		if p.Study.Setup.Unit == 0 || !slices.Contains(p.Study.Policies, contestant) {
			_ = w.Write(r.line(contestant, y.fair(r.Scale), y.Waits[i], "", sim.Weight(weight))) // see CSV
		}
	}
}

// line returns one contestant's in one instance.
func (r *Row) line(contestant string, fair *sim.Fair, waits []int64, score string, weight sim.Weight) []string {
	return []string{
		r.Log, strconv.Itoa(int(r.Scenario)), num(r.Load), strconv.Itoa(r.Period), strconv.Itoa(r.Mapping),
		strconv.FormatInt(r.From, 10), strconv.Itoa(r.Jobs), strconv.Itoa(r.Users), strconv.Itoa(r.Tasks),
		list(r.Cores, 1), strconv.FormatBool(r.Played),
		contestant, strconv.FormatInt(sim.Sum(waits), 10), list([]int64{fair.L1(waits)}, fair.Scale),
		list([]int64{fair.Floor()}, fair.Scale),
		score, list(fair.Phi, fair.Scale), list(waits, 1), weight.String(),
	}
}

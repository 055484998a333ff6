package study

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Series is a study repeated for each of its logs by itself and each of several seeds,
// so that what one log or one draw of periods happens to show is not told as what holds.
type Series struct {
	// Study is what all have in common. Its periods are the most that a log has.
	Study *Study
	// Seeds are 1 … Seeds.
	Seeds int
	// Tasks bounds what a log's periods hold together, in unit tasks and on average:
	// large logs have fewer periods, but one at least. 0 = no bound.
	Tasks int64
}

// maxSeeds bounds a series.
const maxSeeds = 1000

// Part is the study of one log under one seed.
type Part struct {
	Study *Study
	Rows  []*Row
}

// Name tells parts apart, as the name of a file.
func (p *Part) Name() string {
	return fmt.Sprintf("%s-seed-%d", p.Study.Workloads[0].Name, p.Study.Setup.Seed)
}

// Parts lists the studies of the series, log by log. Error: what Study.Validate says.
func (s *Series) Parts() ([]Part, error) {
	if s.Seeds < 1 || s.Seeds > maxSeeds || s.Tasks < 0 || s.Study.Setup.Unit == 0 {
		return nil, fmt.Errorf("%w: %d seeds, %d tasks a log, want 1 to %d seeds, 0 tasks or more, and unit tasks", sim.ErrBadCase, s.Seeds, s.Tasks, maxSeeds)
	}
	if err := s.Study.Validate(); err != nil {
		return nil, err
	}
	var parts []Part
	for _, w := range s.Study.Workloads {
		for seed := range s.Seeds {
			part := *s.Study
			part.Workloads, part.Periods = []*sim.Workload{w}, s.periods(w)
			part.Setup.Seed = uint64(seed + 1)
			parts = append(parts, Part{Study: &part})
		}
	}
	return parts, nil
}

// periods returns how many periods of a log one seed has.
func (s *Series) periods(w *sim.Workload) int {
	mean := w.UnitTasks(s.Study.Setup.Unit) * s.Study.Setup.Period / (w.Span() + 1)
	if s.Tasks == 0 || mean == 0 {
		return s.Study.Periods
	}
	return int(min(max(s.Tasks/mean, 1), int64(s.Study.Periods)))
}

// SeriesReport is what a series came to.
type SeriesReport struct {
	Series *Series
	Parts  []Part
	// Command is what was typed, for who wants to repeat it.
	Command string
}

// rows returns those of all parts; the periods of different seeds are different ones.
func (p *SeriesReport) rows() (rows []*Row) {
	for i := range p.Parts {
		offset := int(p.Parts[i].Study.Setup.Seed) * maxPeriods
		for _, r := range p.Parts[i].Rows {
			moved := *r
			moved.Period += offset
			rows = append(rows, &moved)
		}
	}
	return rows
}

// seedOf returns the seed of one of rows.
func seedOf(r *Row) int { return r.Period / maxPeriods }

// Versus is how a contestant beyond the paper fares against one of the paper's
// policies in one scenario.
type Versus struct {
	Scenario sim.Scenario `json:"scenario"`
	Policy   string       `json:"policy"`
	Than     string       `json:"than"`
	Wins     int          `json:"wins"`
	Losses   int          `json:"losses"`
	Ratio    string       `json:"ratio"`
	// Interval is where the ratio would lie in 95 of 100 draws of other logs and periods.
	Interval string `json:"interval"`
	// Logs and Seeds are the least and the greatest ratio of one log and of one seed.
	Logs  string `json:"logs"`
	Seeds string `json:"seeds"`
}

// Versus compares all contestants beyond the paper with the paper's policies.
func (p *SeriesReport) Versus() (all []Versus) {
	s, rows := p.Series.Study, p.rows()
	for _, scenario := range s.Scenarios {
		for i := range s.Beyond {
			for k := range s.Policies {
				all = append(all, p.versus(rows, scenario, i, k))
			}
		}
	}
	return all
}

func (p *SeriesReport) versus(rows []*Row, scenario sim.Scenario, beyond, paper int) Versus {
	s := p.Series.Study
	duel := func(which func(*Row) bool) *Duel {
		in := func(r *Row) bool { return r.Scenario == scenario && which(r) }
		return contest{distance: (*sim.Fair).L1}.duel(rows, len(s.Policies)+beyond, paper, in)
	}
	d := duel(func(*Row) bool { return true })
	low, high := d.IntervalOverLogs()
	v := Versus{Scenario: scenario, Policy: s.Beyond[beyond], Than: s.Policies[paper], Wins: d.Wins, Losses: d.Losses}
	v.Ratio, v.Interval = d.ratio(), ratio(low)+"–"+ratio(high)
	var logs, seeds []*Duel
	for _, log := range distinct(rows, func(r *Row) string { return r.Log }) {
		logs = append(logs, duel(func(r *Row) bool { return r.Log == log }))
	}
	for _, seed := range distinct(rows, seedOf) {
		seeds = append(seeds, duel(func(r *Row) bool { return seedOf(r) == seed }))
	}
	v.Logs, v.Seeds = span(logs), span(seeds)
	return v
}

// span words the least and the greatest ratio of duels, but of those in which nothing
// was decided.
func span(duels []*Duel) string {
	duels = slices.DeleteFunc(duels, func(d *Duel) bool { return d.Wins+d.Losses == 0 })
	if len(duels) == 0 {
		return "–"
	}
	less := func(a, b *Duel) int { return a.Wins*b.Losses - b.Wins*a.Losses }
	return slices.MinFunc(duels, less).ratio() + " to " + slices.MaxFunc(duels, less).ratio()
}

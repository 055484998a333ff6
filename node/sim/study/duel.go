package study

import (
	"fmt"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Duel counts in how many instances one contestant is fairer than another.
type Duel struct {
	Wins, Losses, Ties int
	blocks             map[block][2]int // wins and losses
}

// add counts an instance: below 0 the first is fairer, above 0 the second.
func (d *Duel) add(r *Row, compared int) {
	b := block{r.Log, r.Period}
	if d.blocks == nil {
		d.blocks = map[block][2]int{}
	}
	n := d.blocks[b]
	switch {
	case compared < 0:
		d.Wins++
		n[0]++
	case compared > 0:
		d.Losses++
		n[1]++
	default:
		d.Ties++
	}
	d.blocks[b] = n
}

// resamples is how many other draws of periods an interval looks at.
const resamples = 2000

// Interval returns where wins/losses would lie in 95 of 100 other draws of periods
// (block bootstrap): from each log as many of its periods are drawn, with
// replacement, as it has, and each brings all its instances, since those of one
// period are of the same jobs. Infinite if nothing is lost, NaN if all are ties.
func (d *Duel) Interval() (low, high float64) {
	return d.interval(func(logs [][][2]int, _ *sim.KeyedRand) [][][2]int { return logs })
}

// IntervalOverLogs returns Interval, but the logs are drawn, too, with replacement: where
// wins/losses would lie in 95 of 100 other draws of logs and of their periods.
func (d *Duel) IntervalOverLogs() (low, high float64) {
	return d.interval(func(logs [][][2]int, d *sim.KeyedRand) [][][2]int {
		drawn := make([][][2]int, len(logs))
		for i := range drawn {
			drawn[i] = logs[d.Below(int64(len(logs)))]
		}
		return drawn
	})
}

// interval is the bootstrap; draw says of which logs a draw is.
func (d *Duel) interval(draw func(logs [][][2]int, d *sim.KeyedRand) [][][2]int) (low, high float64) {
	logs := d.byLog()
	random := sim.NewKeyedRand(8, uint64(d.Wins), uint64(d.Losses), uint64(len(d.blocks)))
	ratios := make([]float64, 0, resamples)
	for range resamples {
		var wins, losses int
		for _, periods := range draw(logs, random) {
			for range periods {
				n := periods[random.Below(int64(len(periods)))]
				wins, losses = wins+n[0], losses+n[1]
			}
		}
		if wins+losses > 0 {
			ratios = append(ratios, float64(wins)/float64(losses))
		}
	}
	if len(ratios) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/40], ratios[len(ratios)-1-len(ratios)/40]
}

// byLog returns the blocks of each log, in an order of their own.
func (d *Duel) byLog() [][][2]int {
	var logs [][][2]int
	last := ""
	for i, b := range sortedBlocks(d.blocks) {
		if i == 0 || b.log != last {
			logs, last = append(logs, nil), b.log
		}
		logs[len(logs)-1] = append(logs[len(logs)-1], d.blocks[b])
	}
	return logs
}

// String is wins : losses, their ratio, and where it would lie.
func (d *Duel) String() string {
	if d.Wins+d.Losses == 0 {
		return "0 : 0"
	}
	return fmt.Sprintf("%d : %d = %s", d.Wins, d.Losses, d.odds())
}

// odds returns the ratio, and where it would lie.
func (d *Duel) odds() string {
	if d.Wins+d.Losses == 0 {
		return "–"
	}
	low, high := d.Interval()
	return fmt.Sprintf("%s (%s–%s)", d.ratio(), ratio(low), ratio(high))
}

// ratio is wins/losses.
func (d *Duel) ratio() string { return ratio(float64(d.Wins) / float64(d.Losses)) }

func ratio(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "∞"
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

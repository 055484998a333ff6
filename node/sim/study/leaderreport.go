package study

import (
	"cmp"
	"slices"
)

// LeaderGain is what a way to lead brings under a policy, over all instances. Times are seconds, gains and losses
// against an honest leader, means over tasks.
type LeaderGain struct {
	Policy   string `json:"policy"`
	Withheld string `json:"withheld"`
	Seconds  int64  `json:"withheld_s"`
	// Wait is the mean wait of the leader's tasks under an honest leader, Gain by how much it is shorter, Least and
	// Most the same by seed.
	Wait  float64 `json:"own_wait_s"`
	Gain  float64 `json:"own_gain_s"`
	Least float64 `json:"least_of_a_seed_s"`
	Most  float64 `json:"most_of_a_seed_s"`
	// Utility is by how much the leader's ψ is greater when all has ended, as a part of it; UtilityGain is the same per
	// core-second of its work, the seconds by which that runs earlier.
	Utility     float64 `json:"own_utility_change"`
	UtilityGain float64 `json:"own_utility_gain_s"`
	// of all others
	OthersWait    float64 `json:"others_wait_s"`
	OthersLoss    float64 `json:"others_loss_s"`
	OthersUtility float64 `json:"others_utility_change"`
	// Better and Worse count the instances in which the leader's tasks wait less and more.
	Better int    `json:"better"`
	Worse  int    `json:"worse"`
	Ratio  string `json:"ratio"` // of these, and where it would lie in 95 of 100 draws of other periods
}

// LeaderTable returns what each way to lead brings under each policy, in the order in which they are given. The same
// instances give the same table, whatever their order.
func LeaderTable(all []Led, policies []string, ways []Withheld) (table []LeaderGain) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Led) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Index, b.Index))
	})
	for _, policy := range policies {
		for _, way := range ways {
			other := func(l Led) bool { return l.Policy != policy || l.Withheld != way }
			rows := slices.DeleteFunc(slices.Clone(all), other)
			table = append(table, leaderGain(rows, policy, way))
		}
	}
	return table
}

func leaderGain(rows []Led, policy string, way Withheld) LeaderGain {
	var d Duel
	var sum Led
	bySeed := map[uint64]*Led{}
	for _, l := range rows {
		d.add(&Row{Log: l.Log, Period: l.Period}, cmp.Compare(l.OwnLed.Wait, l.Own.Wait))
		if bySeed[l.Seed] == nil {
			bySeed[l.Seed] = &Led{}
		}
		sum.plus(&l)
		bySeed[l.Seed].plus(&l)
	}
	g := LeaderGain{
		Policy: policy, Withheld: way.String(), Seconds: way.Seconds,
		Wait: sum.Own.mean(), Gain: sum.Own.mean() - sum.OwnLed.mean(),
		Utility:     change(sum.Own.Utility, sum.OwnLed.Utility),
		UtilityGain: ratioOf(float64(sum.Own.WorkWait-sum.OwnLed.WorkWait), sum.Own.Work),
		OthersWait:  sum.Others.mean(), OthersLoss: sum.OthersLed.mean() - sum.Others.mean(),
		OthersUtility: change(sum.Others.Utility, sum.OthersLed.Utility),
		Better:        d.Wins, Worse: d.Losses, Ratio: d.odds(),
	}
	first := true
	for _, l := range bySeed { // in no order: least and most are the same in each
		gain := l.Own.mean() - l.OwnLed.mean()
		if first {
			g.Least, g.Most, first = gain, gain, false
		}
		g.Least, g.Most = min(g.Least, gain), max(g.Most, gain)
	}
	return g
}

func (l *Led) plus(o *Led) {
	l.Own.plus(&o.Own)
	l.Others.plus(&o.Others)
	l.OwnLed.plus(&o.OwnLed)
	l.OthersLed.plus(&o.OthersLed)
}

func (w *Waited) plus(o *Waited) {
	w.Tasks += o.Tasks
	w.Wait += o.Wait
	w.Work += o.Work
	w.WorkWait += o.WorkWait
	w.Utility += o.Utility
}

// mean returns the mean wait of a task, in seconds.
func (w *Waited) mean() float64 { return ratioOf(float64(w.Wait), w.Tasks) }

// ratioOf returns 0 of nothing.
func ratioOf(sum float64, of int64) float64 {
	if of == 0 {
		return 0
	}
	return sum / float64(of)
}

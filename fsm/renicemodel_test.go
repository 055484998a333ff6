package fsm

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestStateMachineAmongRenices is TestStateMachineAmongDeclines with jobs of one size, whose tasks come back often and
// which are made more and less nice all the time, wherever they are. One replica is restored at
// random, or before each entry: it has none of the gates and depths of the other, and must decide the same.
func TestStateMachineAmongRenices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, smallBounds())
		m.renewed = rapid.Bool().Draw(rt, "renewed")
		for _, x := range modelSites[:3] {
			m.send(m.w.cmd(x, m.w.offering(x, 1, 1)))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.invariants, "submit": m.submitSame, "submit2": m.submitSame,
			"renice": m.renice, "renice2": m.renice, "renice3": m.renice,
			"decline": m.declineAll, "decline2": m.declineAll, "fail": m.failAll, "fail2": m.failAll, "complete": m.complete,
			"cancel": m.seldom(m.cancel), "offer": m.seldom(m.offer), "register": m.seldom(m.register),
			"lost": m.seldom(m.lost), "tick": m.tick, "restore": m.restore,
		})
	})
}

// submitSame submits jobs of one size, whose tasks may begin often; most are of one site.
func (m *model) submitSame(t *rapid.T) {
	m.t = t
	site := rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "owner")
	var jobs []command.JobSpec
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		j := m.w.job(site, rapid.SampledFrom([]uint32{1, 1, 1, 2}).Draw(t, "count"))
		j.MaxAttempts = 9
		jobs = append(jobs, j)
	}
	m.do(site, &command.Submit{Jobs: jobs})
}

// failAll has some or all of what runs at a site fail: its tasks wait again, with their job's bars and gates.
func (m *model) failAll(t *rapid.T) {
	m.t = t
	site := m.site()
	c := &command.Complete{}
	for _, a := range m.w.s.Assignments(site) {
		if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
			c.Attempts = append(c.Attempts, ended(a, command.Failed, 1))
			m.dead[taskKey{m.w.s.findJob(a.Job), a.Task}] = true
		}
	}
	m.do(site, c)
}

// renice changes how nice some jobs are: of those that wait, run, are barred from a site, are remembered by a gate, or
// any, unknown ones among them.
func (m *model) renice(t *rapid.T) {
	m.t = t
	site := m.site()
	all := append(slices.Sorted(maps.Keys(m.w.s.byName[site].nums)), 1<<40)
	kinds := m.w.s.reniceKinds(m.w.s.byName[site])
	var c command.Renice
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		nums := all
		if k := rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "kind"); len(kinds[k]) > 0 {
			nums = kinds[k]
		}
		c.Jobs = append(c.Jobs, command.Nice{
			Num: rapid.SampledFrom(nums).Draw(t, "num"), Nice: rapid.Uint32Range(0, 2).Draw(t, "nice"),
		})
	}
	m.do(site, &c)
}

// reniceKinds returns the numbers of a site's jobs by what a change of their order has to heed, in order.
func (s *State) reniceKinds(x *site) map[string][]uint64 {
	kinds := map[string][]uint64{"any": nil, "waiting": nil, "running": nil, "barred": nil, "gated": nil}
	gated := map[uint64]bool{}
	for _, l := range x.lanes {
		for q := range l.queues.All() {
			for i := range (*q).gates {
				for seq := range (*q).gates[i].open.All() {
					gated[*seq] = true
				}
			}
		}
	}
	for num, seq := range x.nums {
		j := s.jobs.Get(seq)
		for kind, is := range map[string]bool{
			"waiting": j.waiting() > 0, "running": len(s.liveOf(seq)) > 0, "barred": j.hasBars(), "gated": gated[seq],
		} {
			if is {
				kinds[kind] = append(kinds[kind], num)
			}
		}
	}
	for _, nums := range kinds {
		slices.Sort(nums)
	}
	return kinds
}

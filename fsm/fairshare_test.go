package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestFairShareTakesNoSitesWord: a site that lent a thousandth of a core and claimed that its own users took
// 100,000 of them got 1000 runs while an honest one got 600.
func TestFairShareTakesNoSitesWord(t *testing.T) {
	runs := func(claimed int64, own bool) (liar, honest int) {
		p := params()
		p.Policy, p.ClaimedHome = sched.FairShare, own
		w := newWorld(t, p, "liar", "honest")
		o := w.offering("liar", 1)
		o.Home.MilliCPU, o.Machines[0].MilliCPU = claimed, 1 // nothing that anybody can use
		w.must("liar", o)
		w.must("honest", w.offering("honest", 4))
		w.submit("liar", w.job("liar", 100))
		w.submit("honest", w.job("honest", 100))
		for i := range int64(40) {
			w.at((i + 1) * 1000)
			c := &command.Complete{}
			for _, a := range w.s.Assignments("honest") {
				if c.Attempts = append(c.Attempts, ended(a, command.Succeeded, 1000)); a.Job.Site == "liar" {
					liar++
				} else {
					honest++
				}
			}
			w.must("honest", c)
		}
		w.check()
		return liar, honest
	}
	none, most := runs(0, false)
	if none >= most {
		t.Errorf("who lends nothing has %d runs, who lends all %d", none, most)
	}
	if liar, honest := runs(100_000_000, false); liar != none || honest != most {
		t.Errorf("a claim makes %d : %d runs %d : %d", none, most, liar, honest)
	}
	if liar, honest := runs(100_000_000, true); liar <= honest {
		t.Errorf("by the paper's rule what it uses itself counts: %d : %d", liar, honest)
	}
}

// TestFairShareDoesNotPunishReports: home runs are used and contributed at once, and only their site knows of
// them. A site that reports them must not rank behind one that does not.
func TestFairShareDoesNotPunishReports(t *testing.T) {
	for _, own := range []bool{false, true} {
		p := params()
		p.Policy, p.ClaimedHome = sched.FairShare, own
		w := newWorld(t, p, "honest", "silent")
		w.must("honest", w.offering("honest", 4))
		w.must("silent", w.offering("silent", 4))
		w.at(10_000)
		w.must("honest", &command.Usage{
			Batch: 1, Rows: []command.UsageRow{{Job: 1, Need: command.Resources{MilliCPU: 1000}, RunMs: 5000}},
		})
		h, s := w.s.byName["honest"], w.s.byName["silent"]
		if c := w.s.rankOf(h).Compare(*w.s.rankOf(s)); own != (c < 0) || !own && c != 0 {
			t.Errorf("claims count %v: who reports a home run compares %d with who does not", own, c)
		}
		p.ClaimedHome = !own
		w.must("honest", &command.SetParams{Params: p})
		w.check()
		if _, err := reborn(w.s); err != nil {
			t.Error(err)
		}
	}
}

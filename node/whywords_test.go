package node

import (
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// Found by review: odds were promised though no start had been seen yet.
func TestOddsAreNamedOnceTheyAreKnown(t *testing.T) {
	e := Estimate{Unknown: "too few waits were seen"}
	if text := whenText(e); strings.Contains(text, "ten") || !strings.Contains(text, "is not known: too few") {
		t.Error(text)
	}
	e = Estimate{P50: time.Minute, P90: time.Hour, Waits: 40}
	if text := whenText(e); !strings.Contains(text, "nine times of ten, from the last 40 waits") {
		t.Error(text)
	}
}

// Found by review: a job that no site can run was told whose turn it is.
func TestNoTurnWhereNoSiteCanRunIt(t *testing.T) {
	b := &Broker{estimates: NewEstimator()}
	v := fsm.WhyView{
		Params: fsm.DefaultParams(), Job: fsm.JobID{Site: "a", Num: 1}, Waiting: 1, Turns: []fsm.TurnView{{Site: "a", Priority: "0"}},
		Sites: []fsm.SiteWhy{{Site: "a", Why: fsm.HinderedShape}, {Site: "b", Why: fsm.HinderedRule}},
	}
	var w Why
	if b.explain(&w, &v, &hearsay{}, FreshnessOf(0, time.Second)); w.Turn != "" || !strings.Contains(w.Summary, "no site can run it") {
		t.Errorf("%q; %s", w.Turn, w.Summary)
	}
	v.Sites[1].Why = fsm.HinderedFull
	if b.explain(&w, &v, &hearsay{}, FreshnessOf(0, time.Second)); w.Turn == "" {
		t.Error("no turn, though a site can run it")
	}
}

package estimate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/notefile"
	"github.com/cloudshare/cloudshare/sched"
)

// TestEstimatesOutliveARestart: a broker that starts again answers as before, and
// says the same of how its answers came out.
func TestEstimatesOutliveARestart(t *testing.T) {
	w := newWorkload(t, 7, sched.SimplDirect)
	w.run(3000, 0.95)
	path := filepath.Join(t.TempDir(), "estimates.json")
	if !w.est.hasLearnt() || w.est.hasLearnt() {
		t.Error("does not know whether there is something new")
	}
	if err := notefile.Write(path, w.est.kept()); err != nil {
		t.Fatal(err)
	}
	var k keptEstimates
	if _, err := notefile.Read(path, maxEstimatesBytes, &k); err != nil {
		t.Fatal(err)
	}
	again := NewEstimator()
	if err := again.recall(&k, w.state.Time()); err != nil {
		t.Fatal(err)
	}
	clear(w.est.open) // these nobody can judge any more
	was, now := w.est.Calibration(), again.Calibration()
	if was != now || was.Starts < 100 || was.Held == 0 {
		t.Errorf("calibration %+v, after the restart %+v", was, now)
	}
	w.do("a", &command.Submit{Jobs: []command.JobSpec{{
		Num: 90_000, Count: 30, MaxAttempts: 1,
		Need: command.Resources{MilliCPU: 1000},
	}}})
	v, _ := w.state.Why(command.JobID{Site: "a", Num: 90_000})
	if a, b := w.est.Estimate(&v), again.Estimate(&v); a != b || a.Unknown != "" || a.P90 == 0 {
		t.Errorf("estimate %+v, after the restart %+v", a, b)
	}
}

// TestEstimatesOfALaterTime: data that were set back do not learn from a future.
func TestEstimatesOfALaterTime(t *testing.T) {
	e := NewEstimator()
	e.flow("a").add(50*3600_000, use{freed: 1000, ends: 1, held: 5})
	k, again := e.kept(), NewEstimator()
	if err := again.recall(&k, 3600_000); err != nil {
		t.Fatal(err)
	}
	if u := recent([]*flow{again.flow("a")}, 50*3600_000); u != (use{}) {
		t.Errorf("%+v", u)
	}
}

// TestBadEstimatesAreRefused: whatever the file holds, nothing of it is taken and
// nothing panics.
func TestBadEstimatesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "estimates.json")
	slot := func(use string) string {
		return `{"Kinds":[{"Level":0.9},{"Level":0.9}],"Flows":{"a":{"Coarse":[` + use + `]}}}`
	}
	first := func(kind string) string { return `{"Kinds":[` + kind + `,{"Level":0.9}]}` }
	many := `{"N":1},{"N":2}`
	for i := range 100 {
		many += fmt.Sprintf(`,{"N":%d}`, i+3)
	}
	bad := map[string]string{
		"no document": "", "another document": `[1,2]`, "no level": `{}`, "level": first(`{"Level":2}`), "one kind": `{"Kinds":[{"Level":0.9}]}`,
		"before kinds": `{"Level":0.9,"Judged":[true],"Ratios":[[1]],"Flows":{}}`,
		"ratio":        first(`{"Level":0.9,"Ratios":[[-1]]}`), "infinite": first(`{"Level":0.9,"Ratios":[[1e300]]}`),
		"site":           `{"Kinds":[{"Level":0.9},{"Level":0.9}],"Flows":{"../x":{}}}`,
		"negative place": slot(`{"N":-1}`), "far place": slot(`{"N":9223372036854775807}`), "order": slot(`{"N":2},{"N":2}`),
		"freed": slot(`{"N":2,"Freed":-1}`), "ends": slot(`{"N":2,"Ends":-1}`), "held": slot(`{"N":2,"Held":-1}`), "too many": slot(many),
	}
	for name, text := range bad {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e, k := NewEstimator(), keptEstimates{}
		_, err := notefile.Read(path, maxEstimatesBytes, &k)
		if err == nil {
			err = e.recall(&k, 1<<40)
		}
		if err == nil || len(e.flows) > 0 || e.Calibration() != (node.Calibration{}) ||
			e.kinds[kindFresh].level != 0.9 {
			t.Errorf("%s: taken (%v), sites %v", name, err, maps.Keys(e.flows))
		}
	}
}

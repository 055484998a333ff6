package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestSelectors: sites whose handlers have labels and limits of their own. A job
// goes where its selectors lead, no site runs more tasks than it may, and what no
// machine has the labels for hears what there is instead.
func TestSelectors(t *testing.T) {
	t.Parallel()
	fed := start(t, 1, 2)
	first := fed.Sites[0]
	join(t, "gpus", fed.Sites, "--cores", "4", "--labels", "rack=r7", "--handlers-local-labels", "gpu=v100", "--handlers-local-tasks", "2")
	await(t, "machines with labels", func() error {
		_, out, _ := cli(t, first, "sites", "--machines")
		for _, want := range []string{"handler=local,os=linux,site=site-1", "gpu=v100,handler=local,os=linux,rack=r7,site=gpus"} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("%s is missing:\n%s", want, out)
			}
		}
		return nil
	})

	// Its own free cores do not tempt a job that selects others. Three tasks fit,
	// two run.
	bag := newGated(t)
	spec := bag.spec(3)
	spec.Selectors = []string{"gpu in (a100,v100)", "rack"}
	id := submit(t, first, spec).ID
	for _, task := range awaitRunning(t, first, id, 2) {
		if task.State == "running" && task.Site != "gpus" {
			t.Errorf("task %d runs at %s", task.Index, task.Site)
		}
	}
	if _, out, _ := cli(t, first, "why", id); !strings.Contains(out, "local lacks gpu in (a100,v100) (it has no label gpu), rack (it has no label rack)") ||
		!strings.Contains(out, "local runs 2 tasks, as many as it may") {
		t.Errorf("why:\n%s", out)
	}

	const none = "no machine of the federation has gpu=a100; nearest: 1 machine has gpu=v100"
	if code, _, notes := cli(t, first, "submit", "--strict", "--select", "gpu=a100", "--", "true"); code != 5 || !strings.Contains(notes, none) {
		t.Errorf("strict: exit %d, %q", code, notes)
	}
	if code, _, notes := cli(t, first, "submit", "--select", "gpu>1", "--", "true"); code != 2 || !strings.Contains(notes, "selectors.0: must be KEY") {
		t.Errorf("no selector: exit %d, %q", code, notes)
	}

	// Both forms of a list go home: nobody else has no gpu.
	home := submit(t, first, testbed.Spec{Command: []string{"true"}, Selectors: []string{"!gpu", "site==site-1"}})
	awaitEnd(t, first, home.ID)
	if at := tasksOf(t, first, home.ID)[0].Site; at != first.Name {
		t.Errorf("%s ran at %s", home.ID, at)
	}
	_, out, _ := cli(t, first, "job", home.ID, "-o", "json")
	if !strings.Contains(strings.Join(strings.Fields(out), ""), `"selectors":["!gpu","site=site-1"]`) {
		t.Errorf("job: %s", out)
	}
	bag.open(t)
	awaitEnd(t, first, id)
}

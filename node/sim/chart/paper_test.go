package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// paperCase is the example of the paper's Figures 1 and 2: two sites of one
// machine. A submits a task at 0, 2, 4, 6 and 8, each lasting 2; B two at 4, each
// lasting 3. As in the paper every task goes through the queue.
func paperCase(policy string, mode sched.Mode) *sim.Case {
	c := &sim.Case{Cores: []int64{1, 1}, Params: sim.Params(policy), Home: sim.HomeNever}
	c.Params.FixedOrder, c.Params.Running = true, mode
	for i := range int64(5) {
		c.Tasks = append(c.Tasks, sim.Task{Release: 2 * i, Run: 2, Width: 1, Site: 0, Job: 1, Index: int32(i)})
	}
	for i := range int64(2) {
		c.Tasks = append(c.Tasks, sim.Task{Release: 4, Run: 3, Width: 1, Site: 1, Job: 2, Index: int32(i)})
	}
	slices.SortStableFunc(c.Tasks, func(a, b sim.Task) int {
		return cmp.Or(cmp.Compare(a.Release, b.Release),
			cmp.Compare(a.Site, b.Site))
	})
	return c
}

// schedule words an outcome as "A1@A:0 …", by task.
func schedule(c *sim.Case, o *sim.Outcome) string {
	var b bytes.Buffer
	for i, t := range c.Tasks {
		fmt.Fprintf(&b, "%s%d@%s:%d ", ownerMark(t.Site), t.Index+1, ownerMark(o.Site[i]), o.Start[i])
	}
	return b.String()
}

func TestFiguresOfThePaper(t *testing.T) {
	const direct = "A1@A:0 A2@A:2 A3@A:4 B1@B:4 B2@B:7 A4@A:6 A5@A:8 "
	const fair = "A1@A:0 A2@A:2 A3@A:7 B1@A:4 B2@B:4 A4@B:7 A5@A:9 "
	for policy, want := range map[string]string{
		sched.OrigDirect: direct, sched.RelDirect: direct, sched.SimplDirect: direct, sched.FairShare: fair,
	} {
		for _, mode := range []sched.Mode{sched.Partial, sched.Completed} {
			c := paperCase(policy, mode)
			out, err := sim.Play(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := schedule(c, out); got != want {
				t.Errorf("%s, %s: %s, want %s", policy, mode, got, want)
			}
		}
	}
	for name, policy := range map[string]string{"figure1.svg": sched.SimplDirect, "figure2.svg": sched.FairShare} {
		c := paperCase(policy, sched.Partial)
		out, err := sim.Play(c)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Gantt(&b, SVG, c, out, name[:6]+" "+name[6:7]+" of the paper: "+policy); err != nil {
			t.Fatal(err)
		}
		goldenfile.Match(t, name, b.String())
	}
}

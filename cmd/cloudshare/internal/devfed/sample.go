package devfed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// burst is one job of the sample workload.
type burst struct {
	site  int // index of the owner
	count int
	spec  string
	id    string
	ended bool
}

// bursts overflow their owners: site-1 asks for four rounds of all cores at
// once, and a moment later site-2 for one, which the ledger then favours.
func bursts(sites []*devSite) []*burst {
	all := 0
	for _, s := range sites {
		all += s.Cores
	}
	spec := `{"name":"%s","command":["sleep","%d"],"count":%d,"labels":{"sample":"yes"}}`
	out := []*burst{{site: 0, count: 4 * all, spec: fmt.Sprintf(spec, "render", 3, 4*all)}}
	if len(sites) > 1 {
		out = append(out, &burst{site: 1, count: all, spec: fmt.Sprintf(spec, "test", 2, all)})
	}
	return out
}

// runSample submits the bursts and shows a line for every change until all
// have ended, then the ledger.
func (d *dev) runSample(ctx context.Context, sites []*devSite) error {
	clients := make([]*client.Client, len(sites))
	for i, s := range sites {
		c, err := s.client()
		if err != nil {
			return err
		}
		defer c.Close()
		clients[i] = c
	}
	jobs := bursts(sites)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	last := ""
	for step, left := 0, len(jobs); left > 0; step++ {
		if due := step / 3; step%3 == 0 && due < len(jobs) {
			if err := d.submitBurst(ctx, clients[jobs[due].site], sites[jobs[due].site].Name, jobs[due]); err != nil {
				return err
			}
		}
		line, err := sampleLine(ctx, clients[0], jobs, &left)
		if err != nil {
			return err
		}
		if line != last {
			d.Note("%s", line)
			last = line
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-second.C:
		}
	}
	return d.sampleEnd(ctx, clients[0])
}

func (d *dev) submitBurst(ctx context.Context, c *client.Client, owner string, b *burst) error {
	accepted, err := c.Submit(ctx, []byte(b.spec), client.SubmitOptions{})
	if err != nil {
		return err
	}
	b.id = accepted.ID
	d.Note("%s submits job %s: %d tasks of a few seconds", owner, b.id, b.count)
	return nil
}

// sampleLine says who runs how much for whom, and counts what has not ended.
func sampleLine(ctx context.Context, c *client.Client, jobs []*burst, left *int) (string, error) {
	runs := map[string]map[string]int{} // executor → owner → tasks
	waiting := 0
	for _, b := range jobs {
		if b.id == "" || b.ended {
			continue
		}
		job, err := c.Job(ctx, b.id)
		if err != nil {
			return "", err
		}
		if _, b.ended = cli.EndCodes[job.State]; b.ended {
			*left--
			continue
		}
		waiting += int(job.Counts["queued"])
		tasks, err := c.Tasks(ctx, b.id, 1000, "")
		if err != nil {
			return "", err
		}
		countRuns(runs, job.Site, tasks.Items)
	}
	var parts []string
	for _, executor := range slices.Sorted(maps.Keys(runs)) {
		var whom []string
		for _, owner := range slices.Sorted(maps.Keys(runs[executor])) {
			whom = append(whom, fmt.Sprintf("%d for %s", runs[executor][owner], owner))
		}
		parts = append(parts, executor+" runs "+strings.Join(whom, " and "))
	}
	return fmt.Sprintf("%3d waiting | %s", waiting, strings.Join(parts, " | ")), nil
}

func countRuns(runs map[string]map[string]int, owner string, tasks []wire.Task) {
	for _, t := range tasks {
		if t.State != "running" && t.State != "assigned" {
			continue
		}
		if runs[t.Site] == nil {
			runs[t.Site] = map[string]int{}
		}
		runs[t.Site][owner]++
	}
}

// sampleEnd shows what the ledger made of it.
func (d *dev) sampleEnd(ctx context.Context, c *client.Client) error {
	ledger, err := c.Ledger(ctx)
	if err != nil {
		return err
	}
	policy, err := c.Policy(ctx)
	if err != nil {
		return err
	}
	in := cli.NewAmounts(policy)
	d.Note("the sample has ended; who used whose machines (%s):", in.Unit(ledger.Unit))
	for _, cell := range ledger.Matrix {
		d.Note("  %s ran %d tasks of %s, %s", cell.Executor, cell.Tasks, cell.Owner, in.Used(cell.A))
	}
	for _, s := range ledger.Sites {
		d.Note("  %s has priority %s", s.Site, in.Standing(s.Priority))
	}
	d.Note("the federation goes on; Ctrl-C ends it")
	return nil
}

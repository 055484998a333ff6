package jobcmd

import (
	"context"
	"strings"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

const (
	// toldFailed is how many failed tasks are named when a job is waited for, each
	// with the last toldLines lines of its stderr.
	toldFailed = 3
	toldLines  = 5
)

// tellFailed names the tasks of a job that failed first, and what they wrote last.
func tellFailed(ctx context.Context, a *cli.App, c *client.Client, job wire.Job) {
	first := job.Failed[:min(len(job.Failed), toldFailed)]
	if len(first) == 0 || a.Quiet {
		return
	}
	said := lastWords(ctx, c, job.ID, first)
	for _, t := range first {
		a.Note("%s/%d %s", job.ID, t.Index, cli.Cell(taskEnd(t)))
		for line := range strings.Lines(said[t.Index]) {
			a.Note("    %s", cli.Cell(strings.TrimRight(line, "\n")))
		}
	}
	if more := int(job.Counts["failed"]+job.Counts["lost"]) - len(first); more > 0 {
		a.Note("and %d more: cloudshare tasks %s --state failed --state lost", more, job.ID)
	}
}

// lastWords returns the ends of some tasks' stderr; of one that cannot be had, nothing.
func lastWords(ctx context.Context, c *client.Client, id string, tasks []wire.Task) map[uint32]string {
	said := map[uint32]string{}
	var names []string
	for _, t := range tasks {
		names = append(names, cli.Cell(t.Index))
	}
	q := client.OutputQuery{Tasks: strings.Join(names, ","), Stream: "stderr", Tail: toldLines}
	_, _ = c.Output(ctx, id, q, func(o wire.Output) error { // the job's end is told all the same
		said[*o.Task] += o.Text + string(o.Base64)
		return nil
	})
	return said
}

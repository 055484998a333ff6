package jobcmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

const (
	// awaySeconds is how often, a second apart, it is looked whether what failed tasks left has come.
	awaySeconds = 10
	// awayLook bounds the tasks that are looked at, toldAway those that are named.
	awayLook, toldAway = 1000, 3
)

// unsuccessful are the states of tasks whose files nothing waits for.
var unsuccessful = []string{"failed", "cancelled"}

// awaitFailed waits a moment for what tasks left that failed elsewhere, and returns the first whose files are not here.
// What the broker does not answer is not known.
func awaitFailed(ctx context.Context, c *client.Client, job *wire.Job, task *uint32) (away []wire.Task) {
	if job.Spec.Outputs == nil || job.Counts["failed"]+job.Counts["cancelled"] == 0 {
		return nil
	}
	q := client.TaskQuery{States: unsuccessful, Limit: awayLook}
	if task != nil {
		q.Tasks = fmt.Sprint(*task)
	}
	for try := 0; ; try++ {
		list, err := c.FindTasks(ctx, job.ID, q)
		if err != nil {
			return away
		}
		away = slices.DeleteFunc(list.Items, func(t wire.Task) bool { return t.FilesAway == nil })
		coming := slices.ContainsFunc(away, func(t wire.Task) bool { return t.FilesAway.Coming })
		if !coming || try == awaySeconds || cli.Sleep(ctx, time.Second) != nil {
			return away
		}
	}
}

// tellAway says which files have not been fetched, and why.
func tellAway(a *cli.App, id string, away []wire.Task) {
	for _, t := range away[:min(len(away), toldAway)] {
		a.Note("not from %s/%d, which is %s: %s", id, t.Index, cli.Cell(t.State), cli.Cell(t.FilesAway.Why))
	}
	if more := len(away) - toldAway; more > 0 {
		a.Note("nor from %d more: cloudshare tasks %s --state failed --state cancelled", more, id)
	}
}

// tellBehind says how many files of tasks that succeeded stayed behind: their reason says that. What the broker does
// not answer is not known.
func tellBehind(ctx context.Context, a *cli.App, c *client.Client, id string, task *uint32) {
	q := client.TaskQuery{States: []string{"succeeded"}, Limit: awayLook}
	if task != nil {
		q.Tasks = fmt.Sprint(*task)
	}
	list, err := c.FindTasks(ctx, id, q)
	if err != nil {
		return
	}
	behind := slices.DeleteFunc(list.Items, func(t wire.Task) bool { return t.Reason == "" })
	for _, t := range behind[:min(len(behind), toldAway)] {
		a.Note("%s/%d: %s", id, t.Index, cli.Cell(t.Reason))
	}
	if more := len(behind) - toldAway; more > 0 {
		a.Note("and so of %d more: cloudshare tasks %s --state succeeded", more, id)
	}
}

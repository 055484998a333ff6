package jobcmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// jobStates are those of a whole job.
var jobStates = []string{"queued", "running", "succeeded", "failed", "cancelled", "lost", "withdrawn"}

func jobsCommand(a *cli.App) *cobra.Command {
	var q client.JobQuery
	var quiet bool
	cmd := &cobra.Command{
		Use: "jobs", Short: "List jobs, newest first", Args: cobra.NoArgs,
		Example: `  cloudshare jobs --state running
  cloudshare jobs --name nightly
  cloudshare jobs --user alice
  cloudshare jobs --label team=render --limit 5 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(q.Limit); err != nil {
				return err
			}
			page, err := listJobs(cmd.Context(), a, q)
			if err != nil {
				return err
			}
			if page.Next != "" && a.Format == "table" {
				more := "more"
				if len(page.Items) < q.Limit {
					more = fmt.Sprintf("only a part of the jobs was looked at (%d pages or %s); go on with", mostPages, mostLooking)
				}
				defer a.Note("%s: --cursor %s", more, page.Next)
			}
			return a.Show(page, func(w io.Writer) {
				if quiet {
					for _, j := range page.Items {
						fmt.Fprintln(w, j.ID)
					}
					return
				}
				cli.Row(w, "ID", "NAME", "STATE", "TASKS", "SUBMITTED", "REASON")
				for _, j := range page.Items {
					cli.Row(w, j.ID, j.Name, stateText(j), tally(j.Counts), j.SubmittedAt, j.Reason)
				}
			})
		},
	}
	cli.Choice(cmd, &q.State, "state", jobStates, "only jobs in this `STATE`")
	f := cmd.Flags()
	f.StringVar(&q.Site, "site", "", "only jobs of this owner")
	f.StringArrayVar(&q.Labels, "label", nil, "only jobs with this `KEY=VALUE` (may be repeated)")
	f.StringVar(&q.Name, "name", "", "only jobs whose name has this `PART`, whatever its case")
	f.StringVar(&q.User, "user", "", "only jobs of this `USER` of the broker's site: for its operator")
	f.IntVar(&q.Limit, "limit", 20, "how many at most, 1 to 1000")
	f.StringVar(&q.Cursor, "cursor", "", "go on where a page ended")
	f.BoolVarP(&quiet, "quiet", "q", false, "print ids only")
	return cmd
}

// checkLimit refuses all but 1 to 1000. For 0 the client would send no limit, and the API
// would use its default.
func checkLimit(n int) error {
	if n < 1 || n > 1000 {
		return cli.Usage("--limit %d: must be 1 to 1000", n)
	}
	return nil
}

const (
	// mostPages and mostLooking bound how far a list goes for jobs that pass its
	// filter: a broker passes over some ten thousand others in one answer.
	mostPages   = 100
	mostLooking = 5 * time.Second
)

// listJobs goes on where the broker's answer ends until there are as many jobs
// as asked for, there are no more, or a bound is met.
func listJobs(ctx context.Context, a *cli.App, q client.JobQuery) (wire.List[wire.Job], error) {
	c, err := a.Client()
	if err != nil {
		return wire.List[wire.Job]{}, err
	}
	begin, limit := time.Now(), q.Limit
	page, err := c.Jobs(ctx, q)
	if err != nil || page.Next == "" || len(page.Items) >= limit {
		return page, err
	}
	if c, err = a.PlainClient(); err != nil { // one that watches would wait for a change
		return page, err
	}
	defer c.Close()
	for pages := 1; page.Next != "" && len(page.Items) < limit && pages < mostPages &&
		time.Since(begin) < mostLooking; pages++ {
		q.Cursor, q.Limit = page.Next, limit-len(page.Items)
		more, err := c.Jobs(ctx, q)
		if err != nil {
			return page, err
		}
		page.Items, page.Next = append(page.Items, more.Items...), more.Next
	}
	return page, nil
}

// stateText returns a job's state and, if nothing of it runs though some of it has, how far it
// is: it is not just queued.
func stateText(j wire.Job) string {
	if j.Progress == "" || j.State == "running" {
		return j.State
	}
	return j.State + " (" + j.Progress + ")"
}

// tally words the counts that are not zero, the most advanced states last.
func tally(counts map[string]uint32) string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return strings.Join(parts, ", ")
}

package jobcmd

import (
	"fmt"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/fetch"
)

// fetched says what came.
func fetched(o fetch.Outcome) string {
	text := fmt.Sprintf("fetched %s, %s", cli.Plural(int64(o.Fetched), "file"), cli.Bytes(o.Bytes))
	if o.Kept > 0 {
		text += fmt.Sprintf("; %d were here", o.Kept)
	}
	return text
}

// noFiles says why a job has no files to fetch, as far as its state tells.
func noFiles(job wire.Job) error {
	_, over := cli.EndCodes[job.State]
	switch {
	case job.Spec.Outputs == nil:
		return fmt.Errorf("job %s has no files: it was submitted without --output", job.ID)
	case !over:
		return fmt.Errorf("job %s has no files yet: it is %s", job.ID, job.State)
	}
	return fmt.Errorf("job %s has left no files: it is %s", job.ID, job.State)
}

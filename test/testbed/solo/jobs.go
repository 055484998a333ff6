package solo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// Shell is a job that runs a script in an image.
func Shell(image, script string) map[string]any {
	return map[string]any{"image": image, "command": []string{"/bin/sh", "-c", script}}
}

// Accept has the broker accept a job, of any fields, and returns its id.
func (b *Broker) Accept(spec map[string]any) string {
	b.Helper()
	body, err := json.Marshal(spec)
	b.Must(err)
	answer, _, err := b.Do(b.Context(), http.MethodPost, "/v1/jobs", http.Header{"Content-Type": {"application/json"}}, body)
	b.Must(err)
	var a testbed.Accepted
	b.Must(json.Unmarshal(answer, &a))
	return a.ID
}

// Reaches waits until a job is in one of these states.
func (b *Broker) Reaches(id string, states ...string) testbed.Job {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), Limit)
	defer cancel()
	j, err := b.AwaitJob(ctx, id, states...)
	b.Must(err)
	return j
}

// Succeeds waits for a job's end and returns its first task's output.
func (b *Broker) Succeeds(id string) string {
	b.Helper()
	if j := b.Reaches(id, "succeeded", "failed", "lost", "cancelled"); j.State != "succeeded" {
		b.Fatalf("%s is %s: %s\n%s", id, j.State, j.Reason, b.LogTail(20))
	}
	out, err := b.Logs(b.Context(), id, 0)
	b.Must(err)
	return out
}

// Says waits until the job's only task has written that: until it runs.
func (b *Broker) Says(id, text string) {
	b.Helper()
	b.Await(id+" says "+text, func() error {
		out, err := b.Logs(b.Context(), id, 0)
		if err == nil && out != text {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	})
}

// Only returns the job's only task.
func (b *Broker) Only(id string) testbed.Task {
	b.Helper()
	tasks, err := b.Tasks(b.Context(), id)
	b.Must(err)
	return tasks[0]
}

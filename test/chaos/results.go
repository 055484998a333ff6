package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/mark/given"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// inputSum is the SHA-256 of what tasks take.
var inputSum = func() string {
	sum := sha256.Sum256([]byte(given.Input))
	return hex.EncodeToString(sum[:])
}()

// filesOf returns what tasks take and leave.
func filesOf() ([]testbed.Input, *testbed.Outputs) {
	in := []testbed.Input{{Path: given.InputPath, SHA256: inputSum}}
	return in, &testbed.Outputs{Paths: []string{given.OutputPath}, Max: "1Mi"}
}

// sendInput has the broker keep what an order's tasks take.
func (m *member) sendInput(ctx context.Context, o *order) error {
	if !slices.ContainsFunc(o.Jobs, func(j plan.Job) bool { return j.Files }) {
		return nil
	}
	return m.PutBlob(ctx, inputSum, []byte(given.Input))
}

// filesWithin is how long files may take to come home that no success waits for, once all jobs have ended: a site that
// could not be reached is asked again after a minute at most.
const filesWithin = 90 * time.Second

// settleFiles waits until all has come of what tasks left that failed or were cancelled, or was given up.
func (r *run) settleFiles(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, filesWithin, fmt.Errorf("not within %s of the last end", filesWithin))
	defer cancel()
	for _, o := range r.honesty().Ordered(r.ordered()) {
		if !o.Files {
			continue
		}
		for _, id := range slices.Compact(slices.Clone(o.IDs)) {
			err := testbed.Await(ctx, "files of "+id, func() error { return r.noneComing(ctx, o.Owner, id) })
			if err != nil {
				r.violated(check.Delivered, "%s (%s): %s", id, o.Name, err)
			}
		}
	}
}

// noneComing returns which files of a job's tasks are on their way, or nil. What a hostile site keeps may never come.
func (r *run) noneComing(ctx context.Context, owner, id string) error {
	tasks, err := r.byName(owner).Tasks(ctx, id)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.FilesAway.Coming && r.honesty().Is(t.Site) {
			return fmt.Errorf("task %d: %s", t.Index, t.FilesAway.Why)
		}
	}
	return nil
}

// results reads what the tasks of a job have left, as its owner gives it out.
func (r *run) results(ctx context.Context, o check.Ordered, shown check.Shown) ([]check.Result, error) {
	if !o.Files {
		return nil, nil
	}
	m := r.byName(o.Owner)
	list, err := m.ResultFiles(ctx, shown.ID)
	if err != nil {
		return nil, fmt.Errorf("list the results of %s: %w", shown.ID, err)
	}
	var out []check.Result
	for _, f := range list {
		path := fmt.Sprintf("/v1/jobs/%s/files/%s?task=%d", shown.ID, f.Path, f.Task)
		content, _, err := m.Do(ctx, http.MethodGet, path, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("read a result: %w", err)
		}
		out = append(out, check.Result{Task: f.Task, Path: f.Path, Content: string(content)})
	}
	return out, nil
}

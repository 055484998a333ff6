package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"

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

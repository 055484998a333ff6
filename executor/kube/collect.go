package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// Collect implements executor.Collector.
func (h Watched) Collect(ctx context.Context, id executor.ID, want executor.Outputs, sink executor.OutputSink) error {
	w, err := h.works.attempts.EndedOne(id)
	if err == nil && w.IsKept() && want.Kept(w.Ended.Result) {
		left := filepath.Join(w.dir, leftFile)
		open := func() (io.ReadSeekCloser, error) { return outputs.OpenRegular(left, os.O_RDONLY) }
		err = carry.Give(ctx, open, want, sink)
	}
	if err != nil {
		return fmt.Errorf("collect outputs of %s: %w", id, err)
	}
	return nil
}

// withFiles returns the end of an attempt with what became of its files: where they did not come, by no fault of its
// task, it is lost. REQUIRES: workSet.mu held.
func (w *work) withFiles(r executor.Result) executor.Result {
	if !w.carried || !w.Task.Outputs.Kept(r) || r.Cause == executor.Stopped {
		return r
	}
	if r.Cause == executor.Exited && r.ExitCode != 0 && !w.told {
		return r // it was killed with its watchdog: for memory, say
	}
	if _, err := os.Stat(filepath.Join(w.dir, leftFile)); err == nil {
		return r
	}
	return with(r, "the files that it has left were not sent to its broker: "+cmp.Or(w.unsent, "its pod went before"))
}

// dropFiles removes what an ended attempt does not need any more.
func (w *work) dropFiles(kept bool) {
	for _, name := range []string{listFile, partFile, senderFile, leftFile} {
		if name != leftFile || !kept {
			_ = os.Remove(filepath.Join(w.dir, name)) // else with its folder
		}
	}
}

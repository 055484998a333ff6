package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// goneWithin is how long files of ended jobs may stay: the least data.keep_results and data.keep_unnamed, and a few of
// the looks, a minute apart, by which brokers let them go.
const goneWithin = 6 * time.Minute

// TestFilesGoWithTheirJobs: once the time of a job's results is over no byte of its inputs and outputs is left at its
// owner, nor at the sites that ran its tasks, but for the inputs in their caches: those stay until something else needs
// their room. A job that was cancelled in the middle leaves as little.
func TestFilesGoWithTheirJobs(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2, "CLOUDSHARE_DATA_KEEP_RESULTS=1m", "CLOUDSHARE_DATA_KEEP_UNNAMED=1m")
	home := fed.Sites[0]
	s := newSweep(t, 12, 2<<20)
	id := s.submit(t, home)
	cancelled := s.submit(t, home, "--env", "WHY=cancelled")
	await(t, "a running task of the second job", func() error {
		job, err := home.Job(t.Context(), cancelled)
		if err == nil && job.Counts["running"]+job.Counts["succeeded"] == 0 {
			err = fmt.Errorf("tasks %v", job.Counts)
		}
		return err
	})
	_ = home.Cancel(within(t), cancelled) // it may just have ended
	job, err := home.AwaitJob(within(t), id, "succeeded", "failed", "lost")
	must(t, err)
	if job.State != "succeeded" {
		t.Fatalf("job %s ended %s (%s), tasks %v", id, job.State, job.Reason, job.Counts)
	}
	s.check(t, home, id)
	if len(blobsOf(t, home)) == 0 {
		t.Error("nothing was ever kept")
	}
	deadline := time.Now().Add(goneWithin)
	await := func(what string, cond func() error) {
		t.Helper()
		err := testbed.Await(t.Context(), what, func() error {
			err := cond()
			if err != nil && time.Now().After(deadline) {
				t.Fatalf("%s: %v", what, err)
			}
			return err
		})
		must(t, err)
	}
	for _, at := range fed.Sites {
		await("no file of a job at "+at.Name, func() error {
			for _, name := range blobsOf(t, at) {
				if !strings.HasPrefix(name, "cache/") {
					return fmt.Errorf("%s is there", name)
				}
			}
			if elsewhere := holding(t, at, append([][]byte{s.big}, s.small...)); len(elsewhere) > 0 {
				return fmt.Errorf("bytes of it are left in %q", elsewhere)
			}
			return nil
		})
	}
	if _, err := home.ResultFiles(within(t), id); err == nil || !strings.Contains(err.Error(), "results-gone") {
		t.Errorf("its files are asked for: %v", err)
	}
	agree(t, fed)
}

// holding returns the files below a site's folder, but for its cache, in which one of some contents begins.
func holding(t *testing.T, s *testbed.Site, contents [][]byte) (names []string) {
	t.Helper()
	cache := filepath.Join(s.Dir, "data", "data", "cache") + "/"
	must(t, filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has gone meanwhile
		}
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(path, cache) {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, content := range contents {
			if bytes.Contains(b, content[:64]) {
				names = append(names, path)
				break
			}
		}
		return err
	}))
	return names
}

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// outputCounts are what a broker's status tells of outputs.
type outputCounts struct{ Kept, Brought, Waiting int }

// awaitBrought returns once a site has so many outputs of its tasks from others.
func awaitBrought(t *testing.T, s *testbed.Site, n int) {
	t.Helper()
	awaitOutputs(t, s, func(o outputCounts) bool { return o.Brought >= n && o.Waiting == 0 })
}

// awaitKept returns once a site keeps so many outputs, of its own machines and of its tasks from others.
func awaitKept(t *testing.T, s *testbed.Site, n int) {
	t.Helper()
	awaitOutputs(t, s, func(o outputCounts) bool { return o.Kept >= n && o.Waiting == 0 })
}

func awaitOutputs(t *testing.T, s *testbed.Site, cond func(outputCounts) bool) {
	t.Helper()
	await(t, "outputs that come home to "+s.Name, func() error {
		data, _, err := s.Do(t.Context(), http.MethodGet, "/v1/status", nil, nil)
		var got struct{ Outputs outputCounts }
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if err == nil && !cond(got.Outputs) {
			err = fmt.Errorf("%+v", got.Outputs)
		}
		return err
	})
}

// lines is what a task with a large output writes, several segments' worth of it.
const lines = 40_000

// TestOutputsComeHome: what tasks have written at other sites is read at their owner when the brokers that ran them are
// gone and their data with them: each byte of stdout and stderr, large and small, of the last attempt and of an earlier
// one, of one task and of all.
func TestOutputsComeHome(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	asked := fed.Sites[0]
	small := submit(t, asked, testbed.Spec{
		Command: []string{"/bin/sh", "-c", `echo "out $CLOUDSHARE_TASK.$CLOUDSHARE_ATTEMPT"; echo "err $CLOUDSHARE_TASK" >&2
			[ $CLOUDSHARE_ATTEMPT = 2 ] || [ $CLOUDSHARE_TASK != 3 ]`},
		Count: 20, Retry: &testbed.Retry{MaxAttempts: 2}, Sites: &testbed.Where{Not: []string{asked.Name}},
	})
	large := submit(t, asked, testbed.Spec{
		Command: []string{"/bin/sh", "-c", fmt.Sprintf("seq %d; seq 5 >&2", lines)},
		Sites:   &testbed.Where{Not: []string{asked.Name}},
	})
	awaitEnd(t, asked, small.ID)
	awaitEnd(t, asked, large.ID)
	awaitBrought(t, asked, 22)
	for _, s := range fed.Sites[1:] {
		must(t, s.Kill())
		must(t, os.RemoveAll(s.Dir))
	}
	checkHome := func() {
		t.Helper()
		for task := range 20 {
			attempt := 1
			if task == 3 {
				attempt = 2
			}
			for stream, want := range map[string]string{
				"stdout": fmt.Sprintf("out %d.%d\n", task, attempt), "stderr": fmt.Sprintf("err %d\n", task),
			} {
				query := fmt.Sprintf("task=%d&stream=%s&follow=true", task, stream)
				if got, err := logsOf(t, asked, small.ID, query); err != nil || got != want {
					t.Errorf("%s shows %q, %v; want %q", query, got, err, want)
				}
			}
		}
		if got, err := logsOf(t, asked, small.ID, "task=3&attempt=1"); err != nil || got != "out 3.1\n" {
			t.Errorf("the first attempt: %q, %v", got, err)
		}
		if got := manyLogsOf(t, asked, small.ID, "all=true"); len(got) != 20 || got[19] != "out 19.1\n" {
			t.Errorf("of all: %v", got)
		}
		var want strings.Builder
		for n := range lines {
			fmt.Fprintln(&want, n+1)
		}
		if got, err := logsOf(t, asked, large.ID, "task=0"); err != nil || got != want.String() {
			t.Errorf("the large output: %d bytes, %v; want %d", len(got), err, want.Len())
		}
		if got, err := logsOf(t, asked, large.ID, "task=0&tail=1"); err != nil || got != fmt.Sprintln(lines) {
			t.Errorf("its last line: %q, %v", got, err)
		}
	}
	checkHome()
	var refused *testbed.HTTPError
	if _, err := logsOf(t, asked, small.ID, "task=4&attempt=2"); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("an attempt that never was: %v", err)
	}
}

// TestOutputsOfWhileTheOwnerWasAway: what has ended while its owner was killed comes home when that is back, and what
// came before is there after kill -9.
func TestOutputsOfWhileTheOwnerWasAway(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	asked, ran := fed.Sites[0], fed.Sites[1]
	dir := sharedDir(t)
	job := submit(t, asked, testbed.Spec{
		Command: []string{"/bin/sh", "-c", `[ $CLOUDSHARE_TASK = 0 ] || until [ -e "$DIR/gate" ]; do sleep 0.05; done
			echo "task $CLOUDSHARE_TASK"; : > "$DIR/ended$CLOUDSHARE_TASK"`},
		Count: 2, Env: map[string]string{"DIR": dir}, Sites: &testbed.Where{Only: []string{ran.Name}},
	})
	awaitBrought(t, asked, 1)
	must(t, asked.Kill())
	must(t, os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600))
	await(t, "the end of the second task", func() error { _, err := os.Stat(filepath.Join(dir, "ended1")); return err })
	must(t, fed.Restart(within(t), asked))
	awaitEnd(t, asked, job.ID)
	awaitKept(t, asked, 2)
	must(t, ran.Kill())
	must(t, os.RemoveAll(ran.Dir))
	for task := range 2 {
		if got, err := logsOf(t, asked, job.ID, fmt.Sprintf("task=%d", task)); err != nil ||
			got != fmt.Sprintf("task %d\n", task) {
			t.Errorf("task %d: %q, %v", task, got, err)
		}
	}
}

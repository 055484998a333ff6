package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// awaitBrought returns once a site has so many outputs of its tasks from others.
func awaitBrought(t *testing.T, s *testbed.Site, n int) {
	t.Helper()
	await(t, fmt.Sprintf("%d outputs that come home to %s", n, s.Name), func() error {
		data, _, err := s.Do(t.Context(), http.MethodGet, "/v1/status", nil, nil)
		var got struct {
			Outputs struct{ Brought, Waiting int }
		}
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if err == nil && (got.Outputs.Brought < n || got.Outputs.Waiting > 0) {
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

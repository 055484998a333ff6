package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// largeJob has more tasks than the state keeps records of; every failEach-th fails twice.
const (
	largeJob = fsm.DetailTasks + 500
	failEach = 2500
)

// TestOutputsOfALargeJob: the federation keeps no record of the ended tasks of a job with
// so many, and each task's output is read at its owner's broker all the same: single ones,
// ranges, those of failed tasks, all of them, after a restart, and while a site is away
// those that ran there, too. `logs` said that they had not started.
func TestOutputsOfALargeJob(t *testing.T) {
	fed := start(t, 3, 8)
	asked := fed.Sites[0]
	a := submit(t, asked, testbed.Spec{
		Command: []string{"/bin/sh", "-c", fmt.Sprintf(`echo "task $CLOUDSHARE_TASK attempt $CLOUDSHARE_ATTEMPT at $CLOUDSHARE_SITE"; [ $((CLOUDSHARE_TASK %% %d)) != 137 ]`, failEach)},
		Count:   largeJob, Retry: &testbed.Retry{MaxAttempts: 2},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	followed := make(chan error, 1)
	go func() { followed <- followLargeJob(ctx, asked, a.ID) }()
	job, err := asked.AwaitJob(ctx, a.ID, "succeeded", "failed", "lost", "cancelled")
	must(t, err)
	failed := (largeJob-138)/failEach + 1
	if job.Counts["failed"] != failed || job.Counts["succeeded"] != largeJob-failed {
		t.Fatalf("it ended %s, tasks %v", job.State, job.Counts)
	}
	must(t, <-followed)
	sites := map[int]string{} // by task
	checkLargeJob(t, asked, a.ID, sites)
	must(t, asked.Kill())
	must(t, fed.Restart(within(t), asked))
	checkLargeJob(t, asked, a.ID, sites)

	awaitKept(t, asked, largeJob) // some of them only because the state was looked through again
	away := fed.Sites[2]
	must(t, away.Kill())
	told := map[bool]int{}
	for task, site := range sites {
		lost := site == away.Name
		if told[lost]++; told[lost] > 3 {
			continue
		}
		text, err := logsOf(t, asked, a.ID, fmt.Sprintf("task=%d", task))
		if err != nil || !strings.HasSuffix(text, " at "+site+"\n") {
			t.Errorf("task %d ran at %s, while %s is away: %q, %v", task, site, away.Name, text, err)
		}
	}
	if told[true] == 0 || told[false] == 0 {
		t.Errorf("asked for %v outputs of the site that is away and of others", told)
	}
	must(t, fed.Restart(within(t), away))
}

// followLargeJob follows the first thousand tasks while they run: each one's output comes
// once and whole, also of a task that has begun and ended between two looks at it.
func followLargeJob(ctx context.Context, s *testbed.Site, id string) error {
	data, _, err := s.Do(ctx, http.MethodGet, "/v1/jobs/"+id+"/logs?all=true&follow=true", nil, nil)
	if err != nil {
		return err
	}
	texts, err := textsOf(data)
	for task := range 1000 {
		want := fmt.Sprintf("task %d attempt ", task)
		if got := texts[task]; err == nil && (!strings.HasPrefix(got, want) || strings.Count(got, "\n") > 1 &&
			task != 137) {
			err = fmt.Errorf("followed of task %d: %q", task, got)
		}
	}
	return err
}

// checkLargeJob reads outputs at one broker, and notes or compares where they ran.
func checkLargeJob(t *testing.T, s *testbed.Site, id string, sites map[int]string) {
	t.Helper()
	for _, task := range []int{0, 136, 137, 4711, largeJob - 1} {
		text, err := logsOf(t, s, id, fmt.Sprintf("task=%d", task))
		if err != nil {
			t.Fatalf("%s, task %d: %v", s.Name, task, err)
		}
		checkLargeTask(t, s, task, text, sites)
	}
	if text, err := logsOf(t, s, id, "task=137&attempt=1"); err != nil || !strings.HasPrefix(text, "task 137 attempt 1 at ") {
		t.Errorf("%s, the first attempt: %q, %v", s.Name, text, err)
	}
	for query, want := range map[string]int{
		"tasks=3,17,4040-4060,9999-10005":   30,
		"tasks=3,17,4040-4060&tail=1":       23,
		"state=failed&tail=5":               (largeJob-138)/failEach + 1,
		"all=true&cursor=10000":             500,
		"state=succeeded&tail=3&cursor=136": 1000,
	} {
		got := 0
		for task, text := range manyLogsOf(t, s, id, query) {
			got++
			checkLargeTask(t, s, task, text, sites)
		}
		if got != want {
			t.Errorf("%s, %s: output of %d tasks, want %d", s.Name, query, got, want)
		}
	}
}

// checkLargeTask checks what the last attempt of a task has written.
func checkLargeTask(t *testing.T, s *testbed.Site, task int, text string, sites map[int]string) {
	t.Helper()
	attempt := 1
	if task%failEach == 137 {
		attempt = 2
	}
	rest, ok := strings.CutPrefix(text, fmt.Sprintf("task %d attempt %d at ", task, attempt))
	site := strings.TrimSuffix(rest, "\n")
	if known := sites[task]; !ok || site == "" || known != "" && known != site {
		t.Errorf("%s shows of task %d: %q, known at %q", s.Name, task, text, known)
	}
	sites[task] = site
}

// logsOf asks a broker for one task's output.
func logsOf(t *testing.T, s *testbed.Site, id, query string) (string, error) {
	t.Helper()
	data, _, err := s.Do(within(t), http.MethodGet, "/v1/jobs/"+id+"/logs?"+query, nil, nil)
	return string(data), err
}

// manyLogsOf asks a broker for the output of many tasks; a problem ends the test.
func manyLogsOf(t *testing.T, s *testbed.Site, id, query string) map[int]string {
	t.Helper()
	data, err := logsOf(t, s, id, query)
	must(t, err)
	texts, err := textsOf([]byte(data))
	if err != nil {
		t.Fatalf("%s, %s: %v", s.Name, query, err)
	}
	return texts
}

// textsOf reads the output of many tasks, which must have no problem.
func textsOf(data []byte) (map[int]string, error) {
	texts := map[int]string{}
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var line struct {
			Task    *int
			Text    string
			Problem json.RawMessage
		}
		err := dec.Decode(&line)
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err == nil && line.Problem != nil {
			err = fmt.Errorf("task %d: %s", *line.Task, line.Problem)
		}
		if err != nil {
			return texts, err
		}
		if line.Task != nil {
			texts[*line.Task] += line.Text
		}
	}
}

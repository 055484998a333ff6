package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestCutLinesGoOnWhereTheyStopped: a keyed request of many lines is cut in the
// middle and its broker killed; its repeat gives the lines that were accepted
// their jobs again, and the others new ones. No line becomes two jobs.
func TestCutLinesGoOnWhereTheyStopped(t *testing.T) {
	t.Parallel()
	fed := start(t, 1, 1)
	site := fed.Sites[0]
	const lines, cut = 3000, 1300
	var body strings.Builder
	for i := range lines { // no site of that name: they wait
		fmt.Fprintf(&body, `{"command":["true"],"name":"line-%d","sites":{"only":["nowhere"]}}`+"\n", i+1)
	}
	all := body.String()
	first := sendCut(t, site, all, cut)
	must(t, site.Kill())
	must(t, fed.Restart(within(t), site))

	header := http.Header{"Content-Type": {"application/x-ndjson"}, "Idempotency-Key": {"bag"}}
	var ids [2][]string
	for i := range ids {
		data, _, err := site.Do(within(t), http.MethodPost, "/v1/jobs", header, []byte(all))
		must(t, err)
		for line := range strings.Lines(string(data)) {
			ids[i] = append(ids[i], idIn(line))
		}
	}
	if len(ids[0]) != lines || !slices.Equal(ids[0], ids[1]) || slices.Contains(ids[0], "") {
		t.Fatalf("%d and %d answers, equal: %t", len(ids[0]), len(ids[1]), slices.Equal(ids[0], ids[1]))
	}
	for i, id := range first {
		if id != ids[0][i] {
			t.Fatalf("line %d was acknowledged as %s, and again as %s", i+1, id, ids[0][i])
		}
	}
	jobs, err := site.AllJobs(within(t), "")
	must(t, err)
	if len(jobs) != lines {
		t.Errorf("%d lines became %d jobs", lines, len(jobs))
	}
	for _, job := range jobs {
		if i := slices.Index(ids[0], job.ID); i < 0 || job.Name != fmt.Sprintf("line-%d", i+1) {
			t.Fatalf("job %s (%s) is line %d", job.ID, job.Name, i+1)
		}
	}
	one, err := site.SubmitKeyed(within(t), "bag/7", testbed.Spec{Command: []string{"false"}})
	if err == nil || !strings.Contains(err.Error(), "key-reused") {
		t.Errorf("line 7 by its own name, with another body: %+v, %v", one, err)
	}
}

// sendCut sends all of a request's header and the first lines of its body, and
// hangs up once those are answered; it returns their ids.
func sendCut(t *testing.T, s *testbed.Site, body string, lines int) (ids []string) {
	t.Helper()
	token, err := s.Token()
	must(t, err)
	conn, err := net.Dial("tcp", s.URL.Host)
	must(t, err)
	defer conn.Close() // also when the test ends here
	sent := strings.Join(slices.Collect(strings.Lines(body))[:lines], "")
	_, err = fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/x-ndjson\r\nIdempotency-Key: bag\r\nContent-Length: %d\r\n\r\n%s", token, len(body), sent)
	must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer res.Body.Close()
	for answers := bufio.NewScanner(res.Body); len(ids) < lines && answers.Scan(); {
		ids = append(ids, idIn(answers.Text()))
	}
	must(t, conn.Close()) // before the body's Close, which waits for its end
	if len(ids) != lines || slices.Contains(ids, "") {
		t.Fatalf("%d of %d lines are answered", len(ids), lines)
	}
	return ids
}

// idIn is the id in a result line, "" for a problem.
func idIn(line string) string {
	rest, ok := strings.CutPrefix(line, `{"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if !ok {
		return ""
	}
	return id
}

// TestKeysOutliveSteppedClocks: keys aged by the wall clock, so a machine whose clock was
// set more than a day forward made one key two jobs.
func TestKeysOutliveSteppedClocks(t *testing.T) {
	t.Parallel()
	binary := mutated(t)
	fed := startBinary(t, binary, 1, 1)
	site := fed.Sites[0]
	must(t, site.Kill())
	keyed := func(key string) testbed.Job {
		t.Helper()
		made, err := site.SubmitKeyed(within(t), key, testbed.Spec{Command: []string{"true"}})
		must(t, err)
		awaitEnd(t, site, made.ID)
		job, err := site.Job(within(t), made.ID)
		must(t, err)
		return job
	}
	for _, step := range []time.Duration{25 * time.Hour, -25 * time.Hour} {
		file := filepath.Join(t.TempDir(), "stepped")
		_, kill := runMutated(t, binary, site, "wall-step@"+step.String()+"@"+file)
		await(t, "a ready broker", func() error { return site.Ready(t.Context()) })
		first, n := keyed("before "+step.String()), 0
		must(t, os.WriteFile(file, nil, 0o600))
		await(t, "a stepped clock", func() error {
			n++
			made := keyed(fmt.Sprintf("%d after %s", n, step))
			if made.SubmittedAt.Sub(first.SubmittedAt).Abs() < step.Abs()-time.Hour {
				return fmt.Errorf("%s was made at %s", made.ID, made.SubmittedAt)
			}
			return nil
		})
		if again := keyed("before " + step.String()); again.ID != first.ID {
			t.Errorf("after a step of %s the key of %s is that of %s", step, first.ID, again.ID)
		}
		kill()
	}
}

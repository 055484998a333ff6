package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// gateJob is a job of one site that says in a shared folder that it runs, and ends when its gate is there.
func gateJob(dir, name, site string, after ...testbed.After) testbed.Spec {
	return testbed.Spec{
		Name: name, After: after, Sites: &testbed.Where{Only: []string{site}},
		Command: []string{"/bin/sh", "-c", `echo $NAME >> "$DIR/order"; until [ -e "$DIR/$NAME" ]; do sleep 0.05; done`},
		Env:     map[string]string{"DIR": dir, "NAME": name},
	}
}

// TestLinesNameLines: jobs of one file wait for those of earlier lines, and run in that order; a line that names a
// later one is refused, and so is what names it, and no other.
func TestLinesNameLines(t *testing.T) {
	t.Parallel()
	fed := start(t, 1, 2)
	asked, dir := fed.Sites[0], sharedDir(t)
	var lines []byte
	for i, after := range []string{``, `{"job":"#1"}`, `{"job":"#2"},{"job":"#1","when":"any"}`, `{"job":"#5"}`, `{"job":"#4"}`} {
		text, err := json.Marshal(map[string]any{
			"command": []string{"/bin/sh", "-c", `echo $N >> "$DIR/order"`}, "after": json.RawMessage("[" + after + "]"),
			"env": map[string]string{"DIR": dir, "N": strconv.Itoa(i + 1)},
		})
		must(t, err)
		lines = append(append(lines, text...), '\n')
	}
	answer, _, err := asked.Do(within(t), http.MethodPost, "/v1/jobs", http.Header{"Content-Type": {"application/x-ndjson"}}, lines)
	must(t, err)
	answers := strings.Split(strings.TrimSpace(string(answer)), "\n")
	if len(answers) != 5 {
		t.Fatalf("answers are %s", answer)
	}
	for i, text := range answers {
		var a struct{ ID, Detail string }
		must(t, json.Unmarshal([]byte(text), &a))
		if i > 2 {
			if a.ID != "" || !strings.Contains(a.Detail, "line") {
				t.Errorf("line %d is answered %s", i+1, text)
			}
			continue
		}
		if got, err := asked.AwaitJob(within(t), a.ID, "succeeded", "failed", "cancelled"); err != nil || got.State != "succeeded" {
			t.Errorf("line %d: %s, %s: %v", i+1, got.State, got.Reason, err)
		}
	}
	order, err := os.ReadFile(filepath.Join(dir, "order"))
	must(t, err)
	if string(order) != "1\n2\n3\n" {
		t.Errorf("they ran in the order %q", order)
	}
}

// TestChainOverAKilledOwner: of jobs that wait for each other each runs at another site, once, and only when the one
// before has succeeded there, though their owner's broker is killed in between, and is not there when that ends; what
// waits for a failure is cancelled with its reason.
func TestChainOverAKilledOwner(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	asked := fed.Sites[0]
	dir := sharedDir(t)
	open := func(name string) { must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600)) }
	a := submit(t, asked, gateJob(dir, "a", fed.Sites[1].Name))
	b := submit(t, asked, gateJob(dir, "b", fed.Sites[2].Name, testbed.After{Job: a.ID}))
	both := []testbed.After{{Job: b.ID, When: "ok"}, {Job: a.ID, When: "any"}}
	c := submit(t, asked, gateJob(dir, "c", asked.Name, both...))
	never := submit(t, asked, gateJob(dir, "never", asked.Name, testbed.After{Job: a.ID, When: "notok"}))
	awaitRunning(t, asked, a.ID, 1)
	for _, id := range []string{b.ID, c.ID, never.ID} {
		job, err := asked.Job(t.Context(), id)
		must(t, err)
		if job.State != "queued" || job.Counts["held"] != 1 || !strings.HasPrefix(job.Reason, "waits for "+asked.Name+".") {
			t.Errorf("while it waits: %+v", job)
		}
	}
	must(t, asked.Kill())
	open("a")
	must(t, fed.Restart(within(t), asked))
	awaitRunning(t, asked, b.ID, 1)
	must(t, asked.Kill())
	must(t, fed.Restart(within(t), asked))
	open("b")
	awaitRunning(t, asked, c.ID, 1)
	open("c")
	for id, want := range map[string]string{a.ID: "succeeded", b.ID: "succeeded", c.ID: "succeeded", never.ID: "cancelled"} {
		job, err := asked.AwaitJob(within(t), id, "succeeded", "failed", "cancelled", "lost")
		must(t, err)
		if job.State != want || want == "cancelled" && !strings.Contains(job.Reason, "it has succeeded") {
			t.Errorf("%s is %s: %s", job.Name, job.State, job.Reason)
		}
	}
	if order, err := os.ReadFile(filepath.Join(dir, "order")); err != nil || string(order) != "a\nb\nc\n" {
		t.Errorf("begun were %q, %v", order, err)
	}
}

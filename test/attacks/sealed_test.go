//go:build attacks

package attacks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/askkeys"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/seal"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// whatIsRun is what only the owner and the site that runs a job may know of it: its name, command and environment.
var whatIsRun = []string{"sealed-name-5d1f", "sealed-word-93ac", "sealed-value-c07e"}

// runningSealed has a job of site-1's run at site-2.
func runningSealed(t *testing.T) command.AttemptRef {
	t.Helper()
	a, err := shared.Sites[0].Submit(within(t), testbed.Spec{
		Name: whatIsRun[0], Command: []string{"/bin/sh", "-c", "exec sleep 600 # " + whatIsRun[1]},
		Env: map[string]string{"WHAT": whatIsRun[2]}, Sites: &testbed.Where{Only: []string{"site-2"}},
	})
	must(t, err)
	t.Cleanup(func() { cancel(t, shared.Sites[0], a.ID) })
	await(t, "a running task", func() error {
		job, err := shared.Sites[0].Job(t.Context(), a.ID)
		if err == nil && job.Counts["running"] == 1 {
			return nil
		}
		return errNotYet
	})
	tasks, err := shared.Sites[0].Tasks(within(t), a.ID)
	must(t, err)
	token, err := tasks[0].Token.Int64()
	must(t, err)
	id, err := command.ParseJobID(a.ID)
	must(t, err)
	return command.AttemptRef{Job: id, Attempt: uint32(tasks[0].Attempt), Token: uint64(token)}
}

// failSealed has a job of site-1's fail at site-2, since its command is not there: the record says why.
func failSealed(t *testing.T) {
	t.Helper()
	a, err := shared.Sites[0].Submit(within(t), testbed.Spec{
		Command: []string{"/opt/" + whatIsRun[1]}, Sites: &testbed.Where{Only: []string{"site-2"}},
	})
	must(t, err)
	await(t, "a failed job", func() error {
		job, err := shared.Sites[2].Job(t.Context(), a.ID)
		if err == nil && job.State == "failed" {
			return nil
		}
		return errNotYet
	})
	for _, s := range shared.Sites[1:] {
		if told := tellsOf(t, s, a.ID); len(told) > 0 {
			t.Errorf("%s tells what failed: %v", s.Name, told)
		}
	}
}

// keyFor is what a member is told that asks site-1 for the key of an attempt.
func keyFor(t *testing.T, who *intruder.Intruder, ref command.AttemptRef) seal.Answer {
	t.Helper()
	c := askkeys.Client{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return who.Dial(ctx, peerOf(t, shared.Sites[0]), relay.KindKeys)
	}}
	defer c.Close()
	answers, err := c.Ask(within(t), "site-1", "", askkeys.Question{Index: 1, Attempts: []command.AttemptRef{ref}})
	must(t, err)
	return answers[0]
}

// TestSealedCommands: what a job runs is known to its owner and to the site that runs it. A member to which nothing of
// it is assigned gets no key, be it one without machines or one that lends; and it stands nowhere in what a third site
// keeps or tells its operator; nor does why a task of it failed.
func TestSealedCommands(t *testing.T) {
	attacked(t)
	ref := runningSealed(t)
	for name, who := range map[string]*intruder.Intruder{
		"a member that lends nothing": mallory(t).Intruder, "a third site": keyOf(t, shared.Sites[2]),
	} {
		if got := keyFor(t, who, ref); got != (seal.Answer{Refusal: seal.NotAssigned}) {
			t.Errorf("%s is told %+v", name, got)
		}
	}
	if got := keyFor(t, keyOf(t, shared.Sites[1]), ref); got.Refusal != seal.Granted {
		t.Errorf("the site that runs it is told: %s", got.Refusal)
	}
	failSealed(t)
	for _, s := range shared.Sites {
		files := filesWith(t, s)
		told := tellsOf(t, s, ref.Job.String())
		switch {
		case s.Name == "site-3" && len(files) > 0:
			t.Errorf("at the third site it stands in %v", files)
		case s.Name != "site-1" && len(told) > 0:
			t.Errorf("%s tells it: %v", s.Name, told)
		case s.Name == "site-1" && len(told) == 0:
			t.Error("its owner does not tell it")
		}
	}
}

// filesWith are the files of a site in which what a job runs stands.
func filesWith(t *testing.T, s *testbed.Site) (found []string) {
	t.Helper()
	read := 0
	must(t, filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		read++
		if err == nil && tells(text) {
			found = append(found, path)
		}
		return nil
	}))
	if read < 4 {
		t.Errorf("only %d files of %s were there", read, s.Name)
	}
	return found
}

// tellsOf are the paths of a site's API that tell what a job runs.
func tellsOf(t *testing.T, s *testbed.Site, job string) (found []string) {
	t.Helper()
	for _, path := range []string{
		"/v1/jobs", "/v1/jobs?name=sealed-name", "/v1/jobs/" + job, "/v1/jobs/" + job + "/tasks", "/v1/jobs/" + job + "/why",
		"/v1/queue", "/v1/events?from=0&follow=false", "/v1/archive/jobs", "/v1/archive/attempts", "/jobs", "/jobs/" + job, "/metrics",
	} {
		res := request(t, s, http.MethodGet, path, "", bearer(t, s)...)
		text, err := io.ReadAll(res.Body)
		must(t, err)
		_ = res.Body.Close()
		if tells(text) {
			found = append(found, path)
		}
	}
	return found
}

// tells reports whether what a job runs stands in a text.
func tells(text []byte) bool {
	for _, word := range whatIsRun {
		if bytes.Contains(text, []byte(word)) || bytes.Contains(text, []byte(strings.ToUpper(word))) {
			return true
		}
	}
	return false
}

package api

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
)

// TestTESAnswersBeforeInputsAreHere: a task has its id at once and is QUEUED until what stands behind its URLs has
// come; what is not fetched at all is refused at once.
func TestTESAnswersBeforeInputsAreHere(t *testing.T) {
	s, host, come := newImporting(t)
	body := tesBody("n", fmt.Sprintf(`,"inputs":[{"path":"/a","url":"%s/ref.fa"}]`, host))
	id := answer[tesTask](t, ask(s.Server, "POST", tesTasks, js, body), 200).ID
	if got := answer[tesTask](t, ask(s.Server, "GET", tesTasks+"/"+id, "", ""), 200); got.State != "QUEUED" {
		t.Errorf("%+v", got)
	}
	if in := s.fake.jobs[0].Spec.Inputs; len(in) != 0 {
		t.Errorf("%+v", in)
	}
	close(come)
	<-s.fake.settled
	if in := s.fake.jobs[0].Spec.Inputs[0]; in.Blob != files.BlobOf([]byte("/ref.fa")) {
		t.Errorf("%+v", in)
	}
	body = tesBody("n", `,"inputs":[{"path":"/a","url":"https://other.example.org/x"}]`)
	if msg := answer[tesFailure](t, ask(s.Server, "POST", tesTasks, js, body), 400).Msg; !strings.Contains(msg, "data.fetch_from") {
		t.Error(msg)
	}
	if len(s.fake.jobs) != 1 {
		t.Errorf("%d jobs", len(s.fake.jobs))
	}
}

// TestTESImportsOutliveTheBroker: what waits for its inputs when a broker stops is brought by the next run.
func TestTESImportsOutliveTheBroker(t *testing.T) {
	s, host, come := newImporting(t)
	body := tesBody("n", fmt.Sprintf(`,"inputs":[{"path":"/a","url":"%s/ref.fa"},{"path":"/c","content":"text"}]`, host))
	answer[tesTask](t, ask(s.Server, "POST", tesTasks, js, body), 200)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	close(come)
	select {
	case num := <-s.fake.settled:
		t.Fatalf("job %d is settled by a broker that has stopped", num)
	default:
	}
	serve(t, s.fake, Config{Uploads: s.uploads, Imports: s.imports})
	<-s.fake.settled
	in := s.fake.jobs[0].Spec.Inputs
	if len(in) != 2 || in[0].Blob != files.BlobOf([]byte("/ref.fa")) || string(in[1].Content) != "text" {
		t.Errorf("%+v", in)
	}
}

// TestTESImportThatFails ends the task as SYSTEM_ERROR, with the reason in its log.
func TestTESImportThatFails(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "bad\x01name"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFake("site-1")
	f.keepFiles(t, t.TempDir(), 1<<20)
	s := serve(t, f, Config{TESRoots: exports.Roots{exports.OwnUser: {{Name: root, Folder: root}}}})
	body := tesBody("n", fmt.Sprintf(`,"inputs":[{"path":"/d","url":%q,"type":"DIRECTORY"}]`, root))
	id := answer[tesTask](t, ask(s, "POST", tesTasks, js, body), 200).ID
	<-f.settled
	got := answer[tesTask](t, ask(s, "GET", tesTasks+"/"+id+"?view=FULL", "", ""), 200)
	log := strings.Join(got.Logs[0].SystemLogs, "\n")
	if got.State != "SYSTEM_ERROR" || !strings.HasPrefix(log, "its inputs could not be brought: inputs.0.url: ") ||
		*got.Logs[0].Logs[0].ExitCode != -1 {
		t.Errorf("%+v", got)
	}
}

// TestTESKeyMakesOneTask: who sends a document again with the same key is told the same id.
func TestTESKeyMakesOneTask(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	for range 2 {
		if id := answer[tesTask](t, ask(s, "POST", tesTasks, js, tesBody("n", ""), "Idempotency-Key", "k"), 200).ID; id != "site-1.1" {
			t.Error(id)
		}
	}
	if msg := answer[tesFailure](t, ask(s, "POST", tesTasks, js, tesBody("m", ""), "Idempotency-Key", "k"), 400).Msg; !strings.Contains(msg, "key") {
		t.Error(msg)
	}
	answer[tesFailure](t, ask(s, "POST", tesTasks, js, tesBody("m", ""), "Idempotency-Key", strings.Repeat("k", 300)), 400)
	if len(f.jobs) != 1 {
		t.Errorf("%d jobs", len(f.jobs))
	}
}

// TestTESKeyIsKnownWithoutItsInputs: who sends a document again with the same key is told the same id, although its
// inputs have gone meanwhile, or its user's root has been closed. It was refused for that.
func TestTESKeyIsKnownWithoutItsInputs(t *testing.T) {
	root := t.TempDir()
	in := filepath.Join(root, "in")
	if err := os.WriteFile(in, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFake("site-1")
	f.keepFiles(t, t.TempDir(), 1<<20)
	roots := exports.Roots{exports.OwnUser: {{Name: root, Folder: root}}}
	s := serve(t, f, Config{TESRoots: roots})
	body := tesBody("n", fmt.Sprintf(`,"inputs":[{"path":"/d","url":%q}]`, in))
	post := func(key string, status int) string {
		t.Helper()
		w := ask(s, "POST", tesTasks, js, body, "Idempotency-Key", key)
		if w.Code != status {
			t.Errorf("key %s: %d, want %d", key, w.Code, status)
		}
		return w.Body.String()
	}
	first := post("k", 200)
	<-f.settled
	if err := os.Remove(in); err != nil {
		t.Fatal(err)
	}
	if again := post("k", 200); again != first {
		t.Errorf("without its input: %s, was %s", again, first)
	}
	if other := post("other", 400); !strings.Contains(other, "no such file") {
		t.Error(other)
	}
	s = serve(t, f, Config{})
	if again := post("k", 200); again != first || len(f.jobs) != 1 {
		t.Errorf("without its root: %s, was %s; %d jobs", again, first, len(f.jobs))
	}
}

// TestTESWithoutAStore takes no inputs of this site's files: it says so, and makes no task.
func TestTESWithoutAStore(t *testing.T) {
	root := t.TempDir()
	f := newFake("site-1")
	s := serve(t, f, Config{TESRoots: exports.Roots{exports.OwnUser: {{Name: root, Folder: root}}}})
	body := tesBody("n", fmt.Sprintf(`,"inputs":[{"path":"/d","url":%q,"type":"DIRECTORY"}]`, root))
	msg := answer[tesFailure](t, ask(s, "POST", tesTasks, js, body), 503).Msg
	if !strings.Contains(msg, "keeps no files") || len(f.jobs) > 0 {
		t.Error(msg)
	}
}

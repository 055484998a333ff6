package broker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// leaving is a handler whose tasks leave a file.
type leaving struct{ fencedFake }

var _ executor.Collector = leaving{}

// Collect implements executor.Collector.
func (leaving) Collect(_ context.Context, _ executor.ID, want executor.Outputs, sink executor.OutputSink) error {
	if len(want.Paths) == 0 {
		return nil
	}
	return sink.File(executor.OutputFile{Path: want.Paths[0], Size: 4}, strings.NewReader("left"))
}

// temporary is the root in which the folders of all tests are.
var temporary = os.TempDir()

// startLeaving starts sites whose tasks leave files.
func startLeaving(t *testing.T, cores ...int64) []*testSite {
	t.Helper()
	sites := startSitesWithFiles(t, cores...)
	for _, s := range sites {
		s.roots = exports.Roots{"alice": {{Name: temporary, Folder: temporary}}}
		s.kind = func(h *fakeHandler) executor.Handler { return leaving{fencedFake{h}} }
		s.again(t)
	}
	return sites
}

// below returns a path below the folder of temporary files.
func below(t *testing.T, folder, rel string) string {
	t.Helper()
	rel, err := filepath.Rel(temporary, filepath.Join(folder, rel))
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

// attach submits a job whose file goes to a root.
func (s *testSite) attach(t *testing.T, root string) command.JobID {
	t.Helper()
	spec, err := jobspec.ParseSpec([]byte(`{"command":["x"],"outputs":{"paths":["o"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := s.Submit(t.Context(), []node.Request{{Spec: spec, User: "alice", Attached: &node.Attached{
		Document: json.RawMessage(`{"a":1}`), Record: "o",
		Exports: []node.Export{{From: "o", Root: temporary, To: below(t, root, "d/o"), Tag: 5}},
	}}})[0]
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	return a.ID
}

// exported waits for the end of what is attached to a job.
func (s *testSite) exported(t *testing.T, id command.JobID) *node.AttachedEnd {
	t.Helper()
	for late := time.Now().Add(time.Minute); time.Now().Before(late); runtime.Gosched() {
		a, err := s.AttachedDocument(t.Context(), id)
		if err != nil || string(a.Document) != `{"a":1}` || a.User != "alice" {
			t.Fatalf("%+v, %v", a, err)
		}
		if a.End != nil {
			return a.End
		}
	}
	t.Fatal("its end is not noted")
	return nil
}

// TestFilesGoWhereTheyGo: of a job that ran at home and one that ran elsewhere, also if the broker was away meanwhile;
// and what is attached stays.
func TestFilesGoWhereTheyGo(t *testing.T) {
	sites := startLeaving(t, 1, 1)
	a, b := sites[0], sites[1]
	roots := []string{t.TempDir(), t.TempDir()}
	home := a.attach(t, roots[0])
	first := <-a.handler.started
	away := a.attach(t, roots[1])
	second := <-b.handler.started
	a.handler.end(first, executor.Result{Started: time.Now(), Run: time.Second})
	a.exported(t, home)
	a.again(t)
	b.handler.end(second, executor.Result{Started: time.Now(), Run: time.Second})
	a.exported(t, away)
	a.again(t)
	for i, id := range []command.JobID{home, away} {
		end := a.exported(t, id)
		if end.State != "succeeded" || end.Why != "" || len(end.Files) != 1 || end.Files[0] != (node.Exported{Tag: 5, Size: 4}) ||
			string(end.Record) != "left" || end.Site != sites[i].cfg.Site || end.ExitCode == nil {
			t.Errorf("%s: %+v", id, end)
		}
		if text, err := os.ReadFile(filepath.Join(roots[i], "d/o")); err != nil || string(text) != "left" {
			t.Errorf("%s: %q %v", id, text, err)
		}
	}
	if _, err := a.Attached(t.Context(), command.JobID{Site: "site-9", Num: home.Num}); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("another site's: %v", err)
	}
}

// TestFilesThatCannotGo: the end says why.
func TestFilesThatCannotGo(t *testing.T) {
	s := startLeaving(t, 1)[0]
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "d"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := s.attach(t, root)
	s.handler.end(<-s.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
	if end := s.exported(t, id); end.State != "succeeded" || !strings.Contains(end.Why, root) || strings.Contains(end.Why, "\n") {
		t.Errorf("%+v", end)
	}
	id = s.attach(t, root)
	s.handler.end(<-s.handler.started, executor.Result{Started: time.Now(), Run: time.Second, ExitCode: 3})
	if end := s.exported(t, id); end.State != "failed" || *end.ExitCode != 3 {
		t.Errorf("%+v", end)
	}
}

package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/delivery"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
)

// leavesLog is a handler whose tasks leave a file that says which attempt wrote it, too large for a manifest.
type leavesLog struct{ fencedFake }

var _ executor.Collector = leavesLog{}

// leftBy is what an attempt leaves.
func leftBy(attempt uint32) string {
	return strings.Repeat(fmt.Sprintf("attempt %d came so far\n", attempt), 1000)
}

// Collect implements executor.Collector.
func (leavesLog) Collect(_ context.Context, id executor.ID, _ executor.Outputs, sink executor.OutputSink) error {
	content := leftBy(id.Attempt)
	return sink.File(executor.OutputFile{Path: "log", Size: int64(len(content))}, strings.NewReader(content))
}

// leavingSites are two sites whose tasks leave a file; the second one is whose machines run them.
func leavingSites(t *testing.T) (owner, ran *testSite) {
	t.Helper()
	sites := startSitesWithFiles(t, 1, 1)
	for _, s := range sites {
		s.restart(t, func() {
			s.kind = func(h *fakeHandler) executor.Handler { return leavesLog{fencedFake{h}} }
		})
	}
	return sites[0], sites[1]
}

// restart is the next life of a site's broker.
func (s *testSite) restart(t *testing.T, between func()) {
	t.Helper()
	s.stop(t)
	s.handler = s.handler.reopen()
	between()
	s.start(t)
}

// failsAt has a job fail at another site, attempt by attempt, and awaits that it is one.
func (s *testSite) failsAt(t *testing.T, at *testSite, outputs string, attempts int) command.JobID {
	t.Helper()
	answer := s.trySubmit(t, fmt.Sprintf(`{"command":["false"],"sites":{"only":[%q]},"retry":{"max_attempts":%d},"outputs":%s}`,
		at.name, attempts, outputs), "")
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	for range attempts {
		at.handler.end(<-at.handler.started, executor.Result{
			ExitCode: 3, Started: time.Now(), Run: time.Second, Detail: "exited with code 3",
		})
	}
	s.await(t, func(st *fsm.State) bool {
		v, ok := st.Job(answer.ID)
		return ok && v.State == fsm.TaskFailed
	})
	return answer.ID
}

// resultOf awaits what the first task of a job has left, and reads its one file.
func (s *testSite) resultOf(t *testing.T, id command.JobID) (node.TaskResult, string) {
	t.Helper()
	var list []node.TaskResult
	s.eventually(t, func() bool {
		var err error
		list, _, err = s.Results(t.Context(), id, 0, 10)
		return err == nil && len(list) > 0
	})
	read := func(h files.Hash) io.ReadCloser {
		r, err := s.OpenResult(id, h)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text := read(list[0].Manifest.Hash)
	defer text.Close()
	e, err := files.NewManifestReader(text).Next()
	if err != nil {
		t.Fatal(err)
	}
	file := read(e.Hash)
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return list[0], string(content)
}

// eventually waits for a condition that no entry of the log tells of.
func (s *testSite) eventually(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not come to that")
		}
	}
}

// taskOf returns the first task of a job, as it is shown.
func (s *testSite) taskOf(t *testing.T, id command.JobID) node.Task {
	t.Helper()
	list, _, err := s.Tasks(t.Context(), id, 0, 1)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

const alwaysLeft = `{"optional":["log"],"when":"always"}`

// TestFilesOfTasksThatFailedElsewhereComeHome: those of the attempt that counts, byte for byte, and then the site that
// ran it needs to keep them no more.
func TestFilesOfTasksThatFailedElsewhereComeHome(t *testing.T) {
	owner, ran := leavingSites(t)
	id := owner.failsAt(t, ran, alwaysLeft, 2)
	r, content := owner.resultOf(t, id)
	if r.Attempt != 2 || content != leftBy(2) || r.Bytes != int64(len(content)) {
		t.Errorf("%+v, %d bytes: %.30q", r, len(content), content)
	}
	owner.eventually(t, func() bool { return owner.taskOf(t, id).FilesAway.Why == "" })
	if v := owner.taskOf(t, id); v.State != "failed" || v.Reason != "exited with code 3" || *v.ExitCode != 3 {
		t.Errorf("it is shown as %+v", v)
	}
	ask := transfer.Request{Length: r.Manifest.Size, Blob: transfer.Blob{
		Attempt: command.AttemptRef{Job: id, Attempt: 2, Token: owner.taskOf(t, id).Token}, What: transfer.Manifest,
		Hash: r.Manifest.Hash, Size: r.Manifest.Size,
	}}
	ran.eventually(t, func() bool {
		src, why := ran.GiveFile(t.Context(), owner.name, ask)
		if src != nil {
			_ = src.Close()
		}
		return why == transfer.Gone
	})
}

// TestNothingOfFailuresIsKept of jobs that say so, whatever the site that ran them tells.
func TestNothingOfFailuresIsKept(t *testing.T) {
	owner, ran := leavingSites(t)
	id := owner.failsAt(t, ran, `{"optional":["log"],"when":"success"}`, 1)
	if v := owner.taskOf(t, id); v.FilesAway != (node.FilesAway{}) {
		t.Errorf("%+v", v)
	}
	ref := command.AttemptRef{Job: id, Attempt: 1, Token: owner.taskOf(t, id).Token}
	if _, err := owner.owned.leftoverWanted(ran.name, ref); !errors.Is(err, delivery.ErrUnwanted) {
		t.Errorf("wanted: %v", err)
	}
	if list, _, _ := owner.owned.results.List(id.Num, 0, 10); len(list) != 0 {
		t.Errorf("kept are %+v", list)
	}
}

// TestFailureDoesNotWaitForItsFiles: while the site that ran it cannot be reached the job has failed, and says where
// its files are; a restart of its owner forgets nothing of that.
func TestFailureDoesNotWaitForItsFiles(t *testing.T) {
	owner, ran := leavingSites(t)
	owner.unreached.Store(true)
	id := owner.failsAt(t, ran, alwaysLeft, 1)
	owner.eventually(t, func() bool { return strings.Contains(owner.taskOf(t, id).FilesAway.Why, "fetched again") })
	if v := owner.taskOf(t, id); !strings.HasPrefix(v.Reason, "exited with code 3; its outputs are at site-2") {
		t.Errorf("%+v", v)
	}
	owner.restart(t, func() { owner.unreached.Store(false) })
	if r, content := owner.resultOf(t, id); r.Attempt != 1 || content != leftBy(1) {
		t.Errorf("%+v, %d bytes", r, len(content))
	}
}

// otherwise asks other sites' brokers, and has what they answer be something else.
type otherwise struct {
	filesOf
	change func(b transfer.Blob, content []byte) ([]byte, error)
}

// PullBatch implements transfer.Puller.
func (o otherwise) PullBatch(ctx context.Context, site, addr string, index uint64, blobs []transfer.Blob,
	take func(i int, content []byte, refused error) error,
) error {
	return o.filesOf.PullBatch(ctx, site, addr, index, blobs, func(i int, content []byte, refused error) error {
		if blobs[i].What != transfer.Release && refused == nil {
			content, refused = o.change(blobs[i], content)
		}
		return take(i, content, refused)
	})
}

// TestWhatDoesNotComeHomeIsSaid: its site has it no more, or sends something else than it said; the failure stays what
// it was, and nothing is kept.
func TestWhatDoesNotComeHomeIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b transfer.Blob, content []byte) ([]byte, error)
		why    string
	}{
		"gone": {func(b transfer.Blob, _ []byte) ([]byte, error) {
			return nil, &transfer.RefusedError{Refusal: transfer.Gone, Hash: b.Hash}
		}, "has deleted it"},
		"never had": {func(b transfer.Blob, _ []byte) ([]byte, error) {
			return nil, &transfer.RefusedError{Refusal: transfer.NotHere, Hash: b.Hash}
		}, "no such blob"},
		"other bytes": {func(_ transfer.Blob, content []byte) ([]byte, error) {
			return make([]byte, len(content)), nil
		}, "something else"},
	} {
		t.Run(name, func(t *testing.T) {
			owner, ran := leavingSites(t)
			owner.restart(t, func() { owner.transfers = otherwise{filesOf{owner}, c.change} })
			id := owner.failsAt(t, ran, alwaysLeft, 1)
			owner.eventually(t, func() bool { return strings.Contains(owner.taskOf(t, id).FilesAway.Why, "not brought home") })
			v := owner.taskOf(t, id)
			if !strings.Contains(v.FilesAway.Why, c.why) || v.State != "failed" || v.FilesAway.Coming ||
				!strings.HasPrefix(v.Reason, "exited with code 3; its files") {
				t.Errorf("%+v", v)
			}
			if list, _, _ := owner.owned.results.List(id.Num, 0, 10); len(list) != 0 {
				t.Errorf("kept are %+v", list)
			}
		})
	}
}

// TestClaimedSizeIsNotBelieved: a site that says more than the job allows, or another sum than it lists, gives nothing.
func TestClaimedSizeIsNotBelieved(t *testing.T) {
	owner, ran := leavingSites(t)
	owner.unreached.Store(true)
	id := owner.failsAt(t, ran, `{"optional":["log"],"max":"1Mi"}`, 1)
	var said command.Output
	owner.cfg.Replica.View(func(s *fsm.State) {
		tasks, _ := s.Tasks(id, 0, 1)
		said = tasks[0].Output
	})
	ref := command.AttemptRef{Job: id, Attempt: 1, Token: owner.taskOf(t, id).Token}
	for _, forged := range []command.AttemptRef{
		{Job: id, Attempt: 2, Token: ref.Token},
		{Job: id, Attempt: 1, Token: ref.Token + 1},
		{Job: id, Task: 5, Attempt: 1, Token: ref.Token},
	} {
		if _, err := owner.owned.leftoverWanted(ran.name, forged); !errors.Is(err, delivery.ErrUnwanted) {
			t.Errorf("%+v: %v", forged, err)
		}
	}
	if _, err := owner.owned.leftoverWanted("site-3", ref); !errors.Is(err, delivery.ErrUnwanted) {
		t.Errorf("from another site: %v", err)
	}
	w, err := owner.owned.leftoverWanted(ran.name, ref)
	if err != nil || w.Outputs.MaxBytes != 1<<20 || said.Bytes != int64(len(leftBy(1))) {
		t.Errorf("%+v of %+v, %v", w, said, err)
	}
}

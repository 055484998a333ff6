package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// openFiles opens a store for a site's broker.
func openFiles(t *testing.T, dir string) *store.Store {
	t.Helper()
	limit := store.Limit{Max: 1 << 30, Keep: 24 * time.Hour}
	s, err := store.Open(store.Options{
		Dir: dir, Now: time.Now, Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// collecting is a handler whose tasks leave nothing.
type collecting struct{ fencedFake }

var _ executor.Collector = collecting{}

// Collect implements executor.Collector.
func (collecting) Collect(_ context.Context, _ executor.ID, want executor.Outputs, _ executor.OutputSink) error {
	if len(want.Paths) > 0 {
		return &executor.MissingOutputError{Glob: want.Paths[0]}
	}
	return nil
}

// startSitesWithFiles starts sites of so many cores each whose brokers keep files.
func startSitesWithFiles(t *testing.T, cores ...int64) []*testSite {
	t.Helper()
	sites := startSites(t, cores...)
	for _, s := range sites {
		s.stop(t)
		s.filesDir, s.handler = t.TempDir(), s.handler.reopen()
		s.kind = func(h *fakeHandler) executor.Handler { return collecting{fencedFake{h}} }
		s.start(t)
	}
	return sites
}

// put puts a blob of the site's own.
func (s *testSite) put(t *testing.T, content string) files.Blob {
	t.Helper()
	b, err := s.PutBlob(t.Context(), "", strings.NewReader(content), files.MaxFile)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// trySubmit submits a job of the site's own.
func (s *testSite) trySubmit(t *testing.T, json, key string) node.Answer {
	t.Helper()
	spec, err := jobspec.ParseSpec([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return s.Submit(t.Context(), []node.Request{{Spec: spec, Key: key, Meaning: spec.Meaning()}})[0]
}

func inputJob(b files.Blob) string {
	return fmt.Sprintf(`{"command":["cat","in"],"inputs":[{"path":"in","sha256":"%s"}]}`, b.Hash)
}

// TestJobsWithFilesAreResolved: what is not here is refused by its name, repeats are answered all the same, and what
// was taken stays.
func TestJobsWithFilesAreResolved(t *testing.T) {
	s := startSitesWithFiles(t, 1)[0]
	var in *node.InputError
	gone := files.BlobOf([]byte("gone"))
	if a := s.trySubmit(t, inputJob(gone), ""); !errors.As(a.Err, &in) || in.Field != "inputs.0.sha256" {
		t.Errorf("an unknown blob: %+v", a)
	}
	b := s.put(t, "input")
	first := s.trySubmit(t, inputJob(b), "key")
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	if _, yes := s.owned.inputs.Names(first.ID.Num, b.Hash); !yes {
		t.Error("the answer is out, and its input may go")
	}
	s.owned.inputs.Release(first.ID.Num)
	path, err := s.owned.store.Path(store.OwnOf(""), b.Hash)
	if err != nil {
		t.Fatal(err)
	}
	s.damage(t, path)
	if again := s.trySubmit(t, inputJob(b), "key"); again.Err != nil || again.ID != first.ID || !again.Replayed {
		t.Errorf("the repeat: %+v", again)
	}
	if a := s.trySubmit(t, inputJob(b), "other"); !errors.As(a.Err, &in) {
		t.Errorf("another job of what is damaged: %+v", a)
	}
}

// filesOf asks the brokers of a group for files, without a network.
type filesOf struct{ site *testSite }

func (f filesOf) give(ctx context.Context, site string, index uint64, b transfer.Blob, off, n int64) ([]byte, error) {
	other, ok := f.site.brokers.Load(site)
	if !ok || f.site.unreached.Load() {
		return nil, transfer.ErrUnreachable
	}
	q := transfer.Request{Blob: b, Index: index, Offset: off, Length: n}
	src, why := other.(*Broker).GiveFile(ctx, f.site.name, q) //nolint:forcetypeassert // it holds no others
	if src == nil {
		return nil, &transfer.RefusedError{Refusal: why, Hash: b.Hash}
	}
	defer src.Close()
	buf := make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(src, off, n), buf)
	return buf, err
}

// Pull implements transfer.Puller.
func (f filesOf) Pull(ctx context.Context, site, _ string, index uint64, b transfer.Blob, to transfer.Sink) error {
	for _, i := range to.Missing() {
		at := int64(i) * files.PieceBytes
		piece, err := f.give(ctx, site, index, b, at, min(files.PieceBytes, b.Size-at))
		if err == nil {
			err = to.WritePiece(i, piece)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PullBatch implements transfer.Puller.
func (f filesOf) PullBatch(ctx context.Context, site, _ string, index uint64, blobs []transfer.Blob,
	take func(i int, content []byte, refused error) error,
) error {
	for i, b := range blobs {
		content, err := f.give(ctx, site, index, b, 0, b.Size)
		var refused *transfer.RefusedError
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		if err = take(i, content, err); err != nil {
			return err
		}
	}
	return nil
}

// damage has the store find out that a blob is not what it was.
func (s *testSite) damage(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r, err := s.owned.store.Open(store.OwnOf(""), files.HashOf([]byte("input"))); err == nil {
		_ = r.Close()
		t.Fatal("the blob is there")
	}
}

// TestBrokerWithoutFiles refuses jobs with files, and takes all others.
func TestBrokerWithoutFiles(t *testing.T) {
	s := startSites(t, 1)[0]
	for _, json := range []string{
		inputJob(files.BlobOf(nil)), `{"command":["true"],"outputs":{"paths":["out"]}}`,
	} {
		if a := s.trySubmit(t, json, ""); !errors.Is(a.Err, node.ErrNoFiles) {
			t.Errorf("%s: %+v", json, a)
		}
	}
	if _, err := s.MissingBlobs("", nil); !errors.Is(err, node.ErrNoFiles) || s.FilesUse() != nil {
		t.Errorf("%v, use %v", err, s.FilesUse())
	}
	if _, why := s.GiveFile(t.Context(), "site-2", transfer.Request{}); why != transfer.NotHere {
		t.Errorf("it gives: %s", why)
	}
	s.accept(t, sleepJob)
}

// TestInputsAreGivenToWhoRunsThem: by this broker's own state, of that job only, and to nobody else.
func TestInputsAreGivenToWhoRunsThem(t *testing.T) {
	sites := startSitesWithFiles(t, 1, 1)
	a, b := sites[0], sites[1]
	in, other := a.put(t, "input"), a.put(t, "other job's")
	ref := a.runAt(t, b, in)
	ask := func(from string, ref command.AttemptRef, h files.Blob, index uint64) transfer.Refusal {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		src, why := a.GiveFile(ctx, from, transfer.Request{
			Blob:  transfer.Blob{Attempt: ref, What: transfer.Input, Hash: h.Hash, Size: h.Size},
			Index: index, Length: h.Size,
		})
		if src != nil {
			got, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size()))
			if err != nil || files.BlobOf(got) != h {
				t.Errorf("given %q, %v", got, err)
			}
			_ = src.Close()
		}
		return why
	}
	wrong := func(change func(*command.AttemptRef)) command.AttemptRef {
		r := ref
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		from  string
		ref   command.AttemptRef
		blob  files.Blob
		index uint64
		want  transfer.Refusal
	}{
		"its own":         {"site-2", ref, in, a.Index(), transfer.Granted},
		"another site":    {"site-3", ref, in, 0, transfer.NotAllowed},
		"the owner":       {"site-1", ref, in, 0, transfer.NotAllowed},
		"not of its job":  {"site-2", ref, other, 0, transfer.NotAllowed},
		"a forged token":  {"site-2", wrong(func(r *command.AttemptRef) { r.Token++ }), in, 0, transfer.NotAllowed},
		"another attempt": {"site-2", wrong(func(r *command.AttemptRef) { r.Attempt++ }), in, 0, transfer.NotAllowed},
		"another job":     {"site-2", wrong(func(r *command.AttemptRef) { r.Job.Num++ }), in, 0, transfer.NotAllowed},
		"another owner":   {"site-2", wrong(func(r *command.AttemptRef) { r.Job.Site = "site-2" }), in, 0, transfer.NotAllowed},
		"a later state":   {"site-2", ref, in, a.Index() + 1000, transfer.Behind},
	} {
		if got := ask(c.from, c.ref, c.blob, c.index); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	a.owned.inputs.Release(ref.Job.Num) // as if it was never kept
	if got := ask("site-2", ref, in, 0); got != transfer.Granted {
		t.Errorf("a job that is not kept yet: %s", got)
	}
	a.recovered.Store(false)
	if got := ask("site-2", ref, in, 0); got != transfer.Behind {
		t.Errorf("a broker that has not read its journal yet: %s", got)
	}
	a.stop(t)
	a.start(t)
	if got := ask("site-2", ref, in, 0); got != transfer.Granted {
		t.Errorf("behind a restart: %s", got)
	}
	if m := a.Metrics(t.Context()); m.Files.OutBytes != in.Size || len(m.Files.Spaces) != 3 {
		t.Errorf("figures %+v", m.Files)
	}
}

// runAt submits a job with an input that has no room at home, and returns its attempt at another site.
func (s *testSite) runAt(t *testing.T, at *testSite, in files.Blob) (ref command.AttemptRef) {
	t.Helper()
	json := strings.Replace(inputJob(in), "{", fmt.Sprintf(`{"sites":{"only":[%q]},`, at.name), 1)
	answer := s.trySubmit(t, json, "")
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	s.await(t, func(st *fsm.State) bool {
		for _, as := range st.Assignments(at.name) {
			if as.Job == answer.ID {
				ref = as.AttemptRef
				return true
			}
		}
		return false
	})
	return ref
}

// TestFilesGoWithTheirJobs: inputs when their job has ended, results after their time, whatever was missed.
func TestFilesGoWithTheirJobs(t *testing.T) {
	s := startSitesWithFiles(t, 1)[0]
	in := s.put(t, "input")
	a := s.trySubmit(t, inputJob(in), "")
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	left := s.put(t, string(manifestOf(t, "out", "result")))
	if err := s.KeepResult(a.ID.Num, node.TaskResult{Attempt: 1, Manifest: left, Bytes: 6}); err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	s.keepResults = time.Nanosecond
	s.start(t)
	<-s.owned.loaded
	if err := s.owned.sweep(); err != nil {
		t.Fatal(err)
	}
	if _, yes := s.owned.inputs.Names(a.ID.Num, in.Hash); !yes {
		t.Error("the input of a live job may go")
	}
	got, next, err := s.Results(t.Context(), a.ID, 0, 10)
	if err != nil || next != 0 || len(got) != 1 || got[0].Manifest != left {
		t.Fatalf("results %+v, %v", got, err)
	}
	r, err := s.OpenResult(a.ID, left.Hash)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(text, manifestOf(t, "out", "result")) || r.Close() != nil {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := s.OpenResult(a.ID, in.Hash); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("what is no result: %v", err)
	}
	if err := s.Cancel(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-s.handler.stopped:
		s.handler.end(id, executor.Result{Cause: executor.Stopped})
	case <-time.After(10 * time.Millisecond): // it did not run yet
	}
	for len(s.owned.inputs.Jobs()) > 0 {
		if err := s.owned.sweep(); err != nil {
			t.Fatal(err)
		}
	}
	for left := 1; left > 0; { // noted as ended, then dropped
		if err := s.owned.sweep(); err != nil {
			t.Fatal(err)
		}
		list, _, err := s.Results(t.Context(), a.ID, 0, 10)
		if left = len(list); err != nil {
			t.Fatal(err)
		}
	}
}

// manifestOf is the manifest of one small file.
func manifestOf(t *testing.T, path, content string) []byte {
	t.Helper()
	text, err := files.EncodeManifest([]files.Entry{{
		Path: path, Size: int64(len(content)), Hash: files.HashOf([]byte(content)), Inline: []byte(content),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDeliveriesEndTasks: a task with outputs that ran elsewhere ends by what its owner says of them.
func TestDeliveriesEndTasks(t *testing.T) {
	sites := startSitesWithFiles(t, 1, 1)
	a, b := sites[0], sites[1]
	for outputs, want := range map[string]fsm.TaskState{
		`{"optional":["out"]}`: fsm.TaskSucceeded, // it has left nothing, and needs not
		`{"paths":["out"]}`:    fsm.TaskFailed,
	} {
		answer := a.trySubmit(t, `{"command":["true"],"sites":{"only":["site-2"]},"outputs":`+outputs+`}`, "")
		if answer.Err != nil {
			t.Fatal(answer.Err)
		}
		b.handler.end(<-b.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
		a.await(t, func(s *fsm.State) bool {
			v, ok := s.Job(answer.ID)
			return ok && v.State.Ended()
		})
		if job, err := a.Job(t.Context(), answer.ID); err != nil || job.State != want.String() {
			t.Errorf("outputs %s: %s (%s), want %s; %v", outputs, job.State, job.Reason, want, err)
		}
	}
}

// TestOvertakenResultIsNotKept: what an attempt at home has left is not taken for that of the attempt which counts,
// however late its files are copied.
func TestOvertakenResultIsNotKept(t *testing.T) {
	sites := startSitesWithFiles(t, 1, 1)
	a, b := sites[0], sites[1]
	answer := a.trySubmit(t, `{"command":["true"],"sites":{"only":["site-2"]},"outputs":{"optional":["out"]}}`, "")
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	b.handler.end(<-b.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
	a.await(t, func(s *fsm.State) bool {
		v, ok := s.Job(answer.ID)
		return ok && v.State.Ended()
	})
	counts, _, err := a.Results(t.Context(), answer.ID, 0, 10)
	if err != nil || len(counts) != 1 {
		t.Fatalf("%+v, %v", counts, err)
	}
	late := counts[0]
	late.Attempt++
	if err = a.KeepResult(answer.ID.Num, late); err != nil {
		t.Fatal(err)
	}
	if got, _, err := a.Results(t.Context(), answer.ID, 0, 10); err != nil || got[0] != counts[0] {
		t.Errorf("%+v is kept, %v", got, err)
	}
	count := uint32(0)
	for end := time.Now().Add(10 * time.Second); count != 1 && time.Now().Before(end); { // until the core knows its end
		if err = a.owned.sweep(); err != nil {
			t.Fatal(err)
		}
		spec, _ := a.ResultSpec(answer.ID)
		count = spec.Count
	}
	if count != 1 {
		t.Errorf("which tasks its results are of is not kept: %d", count)
	}
}

// TestFilesOfHeldJobsStay: while their job waits for others, over a restart, and when it has begun; they go when it has
// ended, or was cancelled while it waited.
func TestFilesOfHeldJobsStay(t *testing.T) {
	s := startSitesWithFiles(t, 1)[0]
	first := s.accept(t, sleepJob)
	<-s.handler.started
	after := func(content string) (files.Blob, node.Answer) {
		in := s.put(t, content)
		return in, s.accept(t, strings.Replace(inputJob(in), "{", `{"after":[{"job":"`+first.ID.String()+`","when":"any"}],`, 1))
	}
	runs, job := after("input")
	never, other := after("another")
	s.again(t)
	<-s.owned.loaded
	stays := func(id command.JobID, b files.Blob) bool {
		if err := s.owned.sweep(); err != nil {
			t.Fatal(err)
		}
		_, yes := s.owned.inputs.Names(id.Num, b.Hash)
		return yes
	}
	if !stays(job.ID, runs) || !stays(other.ID, never) {
		t.Fatal("the input of a held job may go")
	}
	if err := s.Cancel(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	for stays(other.ID, never) {
		runtime.Gosched()
	}
	if err := s.Cancel(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	s.endStopped(t)
	id := <-s.handler.started
	if !stays(job.ID, runs) {
		t.Error("the input of a job that was held and runs may go")
	}
	s.handler.end(id, executor.Result{Started: time.Now(), Run: time.Second})
	for stays(job.ID, runs) {
		runtime.Gosched()
	}
}

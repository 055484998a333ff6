package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/files/uploads"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// fakeFiles are the files of a fake broker: a real store, and results that tests say.
type fakeFiles struct {
	store   *store.Store // nil: it keeps none
	own     int64        // bytes that users' blobs may take
	results map[command.JobID][]node.TaskResult
	opened  atomic.Int64 // how often OpenResult was asked
}

// keepFiles has the broker keep files in a folder, and returns where unfinished uploads are.
func (f *fakeBroker) keepFiles(t *testing.T, dir string, own int64) *uploads.Uploads {
	t.Helper()
	limit := store.Limit{Max: own, Keep: time.Hour}
	s, err := store.Open(store.Options{
		Dir: filepath.Join(dir, "data"), Now: time.Now, Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := uploads.Open(uploads.Config{Dir: filepath.Join(dir, "uploads"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(u.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	f.fakeFiles = fakeFiles{store: s, own: own, results: map[command.JobID][]node.TaskResult{}}
	return u
}

// MissingBlobs implements Broker.
func (f *fakeFiles) MissingBlobs(user string, hashes []files.Hash) ([]files.Hash, error) {
	if f.store == nil {
		return nil, node.ErrNoFiles
	}
	return f.store.Missing(store.OwnOf(user), hashes...), nil
}

// PutBlob implements Broker.
func (f *fakeFiles) PutBlob(ctx context.Context, user string, r io.Reader, limit int64) (files.Blob, error) {
	if f.store == nil {
		return files.Blob{}, node.ErrNoFiles
	}
	return f.store.Put(ctx, store.OwnOf(user), r, limit)
}

// BeginBlob implements Broker.
func (f *fakeFiles) BeginBlob(user string, b files.Blob) (node.PartialBlob, error) {
	if f.store == nil {
		return nil, node.ErrNoFiles
	}
	p, err := f.store.Begin(store.OwnOf(user), b)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// OpenBlob implements Broker.
func (f *fakeFiles) OpenBlob(user string, h files.Hash) (node.BlobReader, error) {
	if f.store == nil {
		return nil, node.ErrNoFiles
	}
	r, err := f.store.Open(store.OwnOf(user), h)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Results implements Broker: a page has three at most.
func (f *fakeBroker) Results(
	_ context.Context, id command.JobID, from uint32, most int,
) (out []node.TaskResult, next uint32, err error) {
	if _, err := f.find(id); err != nil {
		return nil, 0, err
	}
	for _, t := range f.results[id] {
		if t.Task < from {
			continue
		}
		if len(out) == min(most, 3) {
			return out, t.Task, nil
		}
		out = append(out, t)
	}
	return out, 0, nil
}

// ResultSpec implements Broker.
func (f *fakeBroker) ResultSpec(id command.JobID) (jobspec.Spec, bool) {
	job, err := f.find(id)
	return job.Spec, err == nil && f.retired
}

// OpenResult implements Broker: results are blobs of the site's own.
func (f *fakeFiles) OpenResult(_ command.JobID, h files.Hash) (node.BlobReader, error) {
	f.opened.Add(1)
	return f.OpenBlob("", h)
}

// FilesUse implements Broker.
func (f *fakeFiles) FilesUse() []node.SpaceUse {
	if f.store == nil {
		return nil
	}
	use := f.store.Usage(store.Own)
	return []node.SpaceUse{{Space: "own", Bytes: use.Bytes, Max: use.Max, Blobs: use.Blobs}}
}

// leave has a task of a job have left files, by path; those whose name begins with "x" may be executed.
func (f *fakeBroker) leave(t *testing.T, id string, task uint32, left map[string]string) {
	t.Helper()
	job, err := command.ParseJobID(id)
	if err != nil {
		t.Fatal(err)
	}
	manifest := manifestOf(t, left, func(content string) {
		if _, err := f.store.Put(t.Context(), store.OwnOf(""), bytes.NewReader([]byte(content)), 1<<30); err != nil {
			t.Fatal(err)
		}
	})
	b, err := f.store.Put(t.Context(), store.OwnOf(""), bytes.NewReader(manifest), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	f.results[job] = append(f.results[job], node.TaskResult{Task: task, Attempt: 1, Manifest: b})
}

func sortedPaths(left map[string]string) []string {
	return slices.SortedFunc(maps.Keys(left), files.ComparePaths)
}

// manifestOf returns the manifest of files; keep is called with those that do not stand in it.
func manifestOf(t *testing.T, left map[string]string, keep func(content string)) []byte {
	t.Helper()
	var out bytes.Buffer
	m := files.NewManifestWriter(&out)
	for _, path := range sortedPaths(left) {
		content := []byte(left[path])
		e := files.Entry{Path: path, Size: int64(len(content)), Hash: files.HashOf(content), Executable: path[0] == 'x'}
		if m.Inlines(e.Size) {
			e.Inline = content
		} else {
			keep(left[path])
		}
		if err := m.Add(e); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", path, err))
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

package jobinputs

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a book with its store, whose clock a test sets.
type rig struct {
	*testing.T
	*Book
	files *store.Store
	now   time.Time
}

const keep = 24 * time.Hour

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	limit := store.Limit{Max: 1 << 30, Keep: keep}
	s, err := store.Open(store.Options{
		Dir: t.TempDir(), Now: func() time.Time { return r.now },
		Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.PinsSaid()
	r.files, r.Book = s, NewBook(s)
	return r
}

func (r *rig) put(user, content string) files.Blob {
	r.Helper()
	b, err := r.files.Put(context.Background(), store.OwnOf(user), strings.NewReader(content), files.MaxFile)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// big is content that stands in no manifest.
func big(name string) string { return name + strings.Repeat(".", files.MaxInline) }

// manifest puts the manifest of files, sorted by path, each of which has its path for content, and its blobs.
func (r *rig) manifest(user string, paths ...string) files.Blob {
	r.Helper()
	var entries []files.Entry
	for _, p := range paths {
		b := r.put(user, big(p))
		entries = append(entries, files.Entry{Path: p, Size: b.Size, Hash: b.Hash})
	}
	return r.encoded(user, entries)
}

func (r *rig) encoded(user string, entries []files.Entry) files.Blob {
	r.Helper()
	text, err := files.EncodeManifest(entries)
	if err != nil {
		r.Fatal(err)
	}
	b, err := r.files.Put(context.Background(), store.OwnOf(user), bytes.NewReader(text), files.MaxManifest)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// collect has what is due go, a day and an hour later.
func (r *rig) collect() {
	r.Helper()
	r.now = r.now.Add(keep + time.Hour)
	if _, _, err := r.files.Collect(); err != nil {
		r.Fatal(err)
	}
}

// has reports how many of a user's blobs are there, without any of them staying for that.
func (r *rig) has() int { return r.files.Usage(store.Own).Blobs }

func unsized(b files.Blob) files.Blob { return files.Blob{Hash: b.Hash, Size: jobspec.UnknownSize} }

func specOf(inputs ...jobspec.Input) *jobspec.Spec {
	s := jobspec.DefaultSpec()
	s.Inputs = inputs
	return &s
}

func file(path string, b files.Blob) jobspec.Input {
	return jobspec.Input{Path: path, Blob: unsized(b)}
}

func folder(path string, b files.Blob) jobspec.Input {
	return jobspec.Input{Path: path, From: jobspec.FromDirectory, Blob: unsized(b)}
}

func each(path string, b files.Blob) jobspec.Input {
	return jobspec.Input{Path: path, From: jobspec.FromEach, Blob: unsized(b)}
}

// refused is the field that an error is about, "" for other errors.
func refused(err error) string {
	var in *node.InputError
	if errors.As(err, &in) {
		return in.Field
	}
	return ""
}

package results

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a book on a real journal and store, of jobs that are all ann's; a test sets its clock.
type rig struct {
	*testing.T
	*Book
	journal *record.Journal
	files   *store.Store
	dirs    [2]string
	now     time.Time
}

const keep = 24 * time.Hour

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, dirs: [2]string{t.TempDir(), t.TempDir()}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	r.open()
	if broken, err := r.Load(t.Context()); broken != 0 || err != nil {
		t.Fatal(broken, err)
	}
	r.files.PinsSaid()
	t.Cleanup(func() { r.close() })
	return r
}

// open begins a life of the broker.
func (r *rig) open() {
	r.Helper()
	limit := store.Limit{Max: 1 << 30, Keep: keep}
	now := func() time.Time { return r.now }
	var err error
	r.files, err = store.Open(store.Options{
		Dir: r.dirs[0], Now: now, Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	})
	if err != nil {
		r.Fatal(err)
	}
	if r.journal, err = record.OpenJournal(r.dirs[1]); err != nil {
		r.Fatal(err)
	}
	r.Book, err = Open(Options{
		Journal: r.journal, Store: r.files, UserOf: func(uint64) string { return "ann" }, Now: now,
	})
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) close() {
	r.Helper()
	if err := r.files.Close(); err != nil {
		r.Error(err)
	}
	if err := r.journal.Close(); err != nil {
		r.Error(err)
	}
}

// restart begins the next life.
func (r *rig) restart() (broken int) {
	r.Helper()
	r.close()
	r.open()
	broken, err := r.Load(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	r.files.PinsSaid()
	return broken
}

func (r *rig) put(content []byte) files.Blob {
	r.Helper()
	b, err := r.files.Put(context.Background(), store.OwnOf("ann"), bytes.NewReader(content), files.MaxFile)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// result puts a result of one file with some content, and of the small one "note".
func (r *rig) result(task, attempt uint32, content string) node.TaskResult {
	r.Helper()
	b := r.put([]byte(big(content)))
	text := encoded(r, files.Entry{Path: "note", Size: 2, Hash: files.HashOf([]byte("hi")), Inline: []byte("hi")},
		files.Entry{Path: "out", Size: b.Size, Hash: b.Hash})
	return node.TaskResult{Task: task, Attempt: attempt, Manifest: r.put(text), Bytes: b.Size + 2}
}

func encoded(t *rig, entries ...files.Entry) []byte {
	t.Helper()
	text, err := files.EncodeManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// big is content that stands in no manifest.
func big(name string) string { return name + strings.Repeat(".", files.MaxInline) }

func (r *rig) keep(num uint64, result node.TaskResult) {
	r.Helper()
	if err := r.Keep(num, result); err != nil {
		r.Fatal(err)
	}
}

// left has what is due go, a day and an hour later, and returns how many blobs are left.
func (r *rig) left() int {
	r.Helper()
	r.now = r.now.Add(keep + time.Hour)
	if _, _, err := r.files.Collect(); err != nil {
		r.Fatal(err)
	}
	return r.files.Usage(store.Own).Blobs
}

// list returns all results of a job by pages of two.
func (r *rig) list(num uint64) (all []node.TaskResult) {
	r.Helper()
	for from := uint32(0); ; {
		page, next, _ := r.List(num, from, 2)
		all = append(all, page...)
		if from = next; next == 0 {
			return all
		}
	}
}

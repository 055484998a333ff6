package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/test/raced"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashAt) != "" {
		playUntilKilled()
		return
	}
	raced.FewerChecks("25")
	goleak.VerifyTestMain(m)
}

// Moments and places of the tests.
var (
	moment = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	own    = Place{Own, "site-1"}
	cached = Place{Cache, "site-2"}
	out    = Place{Outgoing, "site-2"}
)

// fataler is a test, a benchmark, or one draw of rapid's.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// rig is a store whose clock and disk a test sets.
type rig struct {
	fataler
	*Store
	dir   string
	clock time.Time
	opts  Options
	fault func(point) error
	piece int64 // bytes; 0: files.PieceBytes
	boot  string
	// timed has the log be as large as it is, and be emptied as it is.
	timed bool
}

// newRig opens a store in a folder, and says that nothing is pinned.
func newRig(t fataler, dir string, limits Limits) *rig {
	t.Helper()
	r := &rig{fataler: t, dir: dir, clock: moment, boot: "first"}
	r.opts = Options{Dir: dir, Limits: limits, Now: func() time.Time { return r.clock }}
	r.start()
	r.Repin(noPins)
	return r
}

// withPieces has pieces of so many bytes from now on.
func (r *rig) withPieces(n int64) *rig {
	r.piece = n
	r.Store.piece = n
	return r
}

// testRig is one with room enough, closed at the end.
func testRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, t.TempDir(), roomy())
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func limitsOf(own, cache, outgoing Limit) Limits { return Limits{own, cache, outgoing} }

func roomy() Limits {
	return limitsOf(Limit{1 << 30, 24 * time.Hour}, Limit{1 << 30, 0}, Limit{1 << 30, 24 * time.Hour})
}

// shortLog is a log that a few blobs fill.
const shortLog = 4 << 10

// await waits until nobody writes the log or empties it.
func (l *smallLog) await() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing {
		l.idle.Wait()
	}
}

func noPins(func(string, Ref) bool) {}

func (r *rig) start() {
	r.Helper()
	s, err := open(r.opts, r.machine())
	if err != nil {
		r.Fatal(err)
	}
	r.use(s)
}

func (r *rig) machine() machine {
	m := machine{boot: r.boot, log: shortLog, noSyncAll: true, fault: func(p point) error {
		if r.fault == nil {
			return nil
		}
		return r.fault(p)
	}}
	if r.timed {
		m.log, m.noSyncAll = logBytes, false
	}
	return m
}

func (r *rig) use(s *Store) {
	r.Store = s
	if r.piece > 0 {
		s.piece = r.piece
	}
}

// reopen does as a process does that was killed and starts again.
func (r *rig) reopen() {
	r.Helper()
	_ = r.Store.disk.close()
	r.start()
	r.log.await() // what is found is synced beside what follows
}

func (r *rig) put(at Place, content string) files.Blob {
	r.Helper()
	b, err := r.Put(context.Background(), at, strings.NewReader(content), files.MaxFile)
	if err != nil {
		r.Fatal(err)
	}
	if b != files.BlobOf([]byte(content)) {
		r.Fatalf("put as %v", b)
	}
	return b
}

// read returns a blob's content by Read, and compares it with what ReadAt returns.
func (r *rig) read(at Place, h files.Hash) (string, error) {
	rd, err := r.Open(at, h)
	if err != nil {
		return "", err
	}
	defer rd.Close()
	b, err := io.ReadAll(rd)
	if err != nil {
		return "", err
	}
	again := make([]byte, rd.Size())
	if n, err := rd.ReadAt(again, 0); n != len(b) || err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(again, b) {
		r.Errorf("ReadAt returns %d of %d bytes: %v", n, len(b), err)
	}
	return string(b), nil
}

func (r *rig) want(at Place, content string) {
	r.Helper()
	if got, err := r.read(at, files.HashOf([]byte(content))); err != nil || got != content {
		r.Errorf("%.40q of %v: %.40q, %v", content, at, got, err)
	}
}

func (r *rig) wantNone(at Place, content string) {
	r.Helper()
	if _, err := r.read(at, files.HashOf([]byte(content))); !errors.Is(err, ErrUnknown) {
		r.Errorf("%.40q of %v: %v", content, at, err)
	}
}

// names lists the files below the store's folder, but for bootFile and logFile.
func (r *rig) names() (list []string) {
	r.Helper()
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if rel, _ := filepath.Rel(r.dir, path); rel != bootFile && rel != logFile {
				list = append(list, rel)
			}
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func ref(at Place, content string) Ref { return Ref{at, files.HashOf([]byte(content))} }

// text returns content of a length that begins with a name.
func text(name string, n int) string { return (name + strings.Repeat("·-", n))[:n] }

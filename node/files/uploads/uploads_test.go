package uploads

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// rig has uploads and the store of their pieces, which are closed and opened again.
type rig struct {
	t     *testing.T
	dir   string
	now   time.Time
	store *store.Store
	*Uploads
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), now: time.Unix(1e9, 0)}
	r.open(Config{})
	t.Cleanup(r.close)
	return r
}

func (r *rig) open(cfg Config) {
	r.t.Helper()
	clock := func() time.Time { return r.now }
	limit := store.Limit{Max: 1 << 30, Keep: 24 * time.Hour}
	var err error
	r.store, err = store.Open(store.Options{
		Dir: filepath.Join(r.dir, "data"), Now: clock, Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	cfg.Dir, cfg.Now = filepath.Join(r.dir, "uploads"), clock
	if r.Uploads, err = Open(cfg); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) close() {
	r.t.Helper()
	if err := errors.Join(r.Uploads.Close(), r.store.Close()); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) restart(cfg Config) { r.close(); r.open(cfg) }

// write sends a part of a content as one request, and returns where the next one begins.
func (r *rig) write(b files.Blob, body io.Reader) (int64, error) {
	r.t.Helper()
	u, err := r.Begin("alice", b)
	if err != nil {
		r.t.Fatal(err)
	}
	defer u.Release()
	p, err := r.store.Begin(store.OwnOf("alice"), b)
	if err != nil {
		r.t.Fatal(err)
	}
	offset, err := u.Write(p, body)
	if again, oerr := u.Offset(p); err == nil && (oerr != nil || again != offset) {
		r.t.Fatalf("offset %d after writing to %d: %v", again, offset, oerr)
	}
	return offset, errors.Join(err, p.Close())
}

func content(seed uint64, n int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

// TestChunksOfAnyLengthSurviveRestarts: whatever the chunks are, and wherever the broker is started again.
func TestChunksOfAnyLengthSurviveRestarts(t *testing.T) {
	for _, size := range []int{0, 1, 100, files.PieceBytes, files.PieceBytes + 1, 2*files.PieceBytes + 12345} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r, rng := newRig(t), rand.New(rand.NewPCG(uint64(size), 1))
			all := content(uint64(size), size)
			b := files.BlobOf(all)
			for offset := 0; ; {
				n := rng.IntN(size/3 + 2)
				next, err := r.write(b, bytes.NewReader(all[offset:min(size, offset+n)]))
				if want := min(size, offset+n); err != nil || next != int64(want) {
					t.Fatalf("wrote to %d, want %d: %v", next, want, err)
				}
				if offset = int(next); offset == size {
					break
				}
				r.restart(Config{})
			}
			if err := r.store.Verify(store.OwnOf("alice"), b.Hash); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCutBodyKeepsWhatCame: the bytes before the cut count, whatever the error.
func TestCutBodyKeepsWhatCame(t *testing.T) {
	r := newRig(t)
	all := content(1, 1000)
	cut := errors.New("cut")
	offset, err := r.write(files.BlobOf(all), io.MultiReader(bytes.NewReader(all[:300]), iotest.ErrReader(cut)))
	if offset != 300 || !errors.Is(err, cut) {
		t.Errorf("%d %v", offset, err)
	}
	if offset, err = r.write(files.BlobOf(all), bytes.NewReader(all[300:])); offset != 1000 || err != nil {
		t.Errorf("%d %v", offset, err)
	}
}

// TestTornTailCountsAsNothing: a crash of the machine may leave other bytes than were written.
func TestTornTailCountsAsNothing(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"a bit":     func(b []byte) []byte { b[head+7] ^= 1; return b },
		"the end":   func(b []byte) []byte { return b[:len(b)-1] },
		"the head":  func(b []byte) []byte { return b[:5] },
		"no bytes":  func([]byte) []byte { return nil },
		"a lie":     func(b []byte) []byte { b[7] = 0xff; return b },
		"elsewhere": func(b []byte) []byte { b[0] = 9; return b },
	} {
		r := newRig(t)
		all := content(2, 1000)
		b := files.BlobOf(all)
		if _, err := r.write(b, bytes.NewReader(all[:300])); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(r.dir, "uploads", key{files.HashOf([]byte("alice")), b}.path())
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(path, damage(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if offset, err := r.write(b, bytes.NewReader(nil)); offset != 0 || err != nil {
			t.Errorf("%s: %d %v", name, offset, err)
		}
		if offset, err := r.write(b, bytes.NewReader(all)); offset != 1000 || err != nil {
			t.Errorf("%s: %d %v", name, offset, err)
		}
	}
}

// TestWrongBytesAreNoBlob: the store says so, and keeps nothing.
func TestWrongBytesAreNoBlob(t *testing.T) {
	r := newRig(t)
	b := files.BlobOf([]byte("right"))
	if _, err := r.write(b, bytes.NewReader([]byte("wrong"))); !errors.Is(err, store.ErrWrongHash) {
		t.Error(err)
	}
}

// TestBounds: of uploads in number, of all and of each, and in time; the ones that nobody writes give way.
func TestBounds(t *testing.T) {
	r := newRig(t)
	cfg := Config{Most: 5, MostEach: 3}
	r.restart(cfg)
	begin := func(user string, n int) error {
		u, err := r.Begin(user, files.BlobOf(content(uint64(n), 10)))
		if err == nil {
			u.Release()
		}
		return err
	}
	for i := range 3 {
		if err := begin("alice", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := begin("alice", 3); !errors.Is(err, ErrTooMany) {
		t.Errorf("the fourth: %v", err)
	}
	r.restart(cfg)
	if err := errors.Join(begin("alice", 0), begin("bob", 0), begin("bob", 1)); err != nil {
		t.Errorf("another user, or one that is there: %v", err)
	}
	if err := begin("carol", 0); !errors.Is(err, ErrTooMany) {
		t.Errorf("the sixth of all: %v", err)
	}
	r.now = time.Now().Add(idle) // files have the real time
	if err := begin("alice", 3); err != nil {
		t.Errorf("behind an idle one: %v", err)
	}
	r.now = r.now.Add(25 * time.Hour)
	if _, err := r.Resume("alice", files.BlobOf(content(3, 10))); !errors.Is(err, ErrUnknown) {
		t.Errorf("a day later: %v", err)
	}
	r.Sweep()
	if left, err := filepath.Glob(filepath.Join(r.dir, "uploads", "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

// TestOneAtATime writes an upload, and End forgets it.
func TestOneAtATime(t *testing.T) {
	r := newRig(t)
	b := files.BlobOf([]byte("x"))
	u, err := r.Begin("alice", b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Begin("alice", b); !errors.Is(err, ErrBusy) {
		t.Errorf("begin: %v", err)
	}
	if _, err = r.Resume("alice", b); !errors.Is(err, ErrBusy) {
		t.Errorf("resume: %v", err)
	}
	if _, err = r.Resume("bob", b); !errors.Is(err, ErrUnknown) {
		t.Errorf("another user: %v", err)
	}
	u.End()
	u.Release()
	if _, err = r.Resume("alice", b); !errors.Is(err, ErrUnknown) {
		t.Errorf("after its end: %v", err)
	}
}

// FuzzParseName: a name is the one text of its blob, whatever a client asks for.
func FuzzParseName(f *testing.F) {
	hash := files.HashOf(nil).String()
	for _, name := range []string{hash + "-0", hash + "-+1", hash + "-01", hash + "--1", hash, "-1", hash + "-1099511627777"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		b, err := ParseName(name)
		if err != nil {
			return
		}
		k := key{blob: b}
		if got := k.path(); got != k.user.String()+"/"+name || b.Check() != nil {
			t.Errorf("%q is %q", name, got)
		}
	})
}

package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/node/files"
)

// shortPiece is how many bytes a piece has in tests that do not need large ones.
const shortPiece = 1 << 10

// big has three pieces and a short one.
var big = sync.OnceValue(func() string { return strings.Repeat("0123456789abcdef", 3*shortPiece/16) + "the end" })

func (s *Store) pieceOf(content string, i int) []byte {
	return []byte(content[i*int(s.piece) : min((i+1)*int(s.piece), len(content))])
}

func (r *rig) begin(at Place, content string) *Partial {
	r.Helper()
	p, err := r.Begin(at, files.BlobOf([]byte(content)))
	if err != nil {
		r.Fatal(err)
	}
	return p
}

func (r *rig) write(p *Partial, content string, pieces ...int) {
	r.Helper()
	for _, i := range pieces {
		if err := p.WritePiece(i, r.pieceOf(content, i)); err != nil {
			r.Fatal(err)
		}
	}
}

// fill has a blob filled.
func (r *rig) fill(at Place, content string) {
	r.Helper()
	p := r.begin(at, content)
	r.write(p, content, p.Missing()...)
	if err := errors.Join(p.Finish(), p.Close()); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) wantMissing(p *Partial, pieces ...int) {
	r.Helper()
	if got := p.Missing(); !slices.Equal(got, pieces) {
		r.Errorf("missing %v, want %v", got, pieces)
	}
}

func TestPartialInAnyOrder(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	p := r.begin(cached, big())
	if p.Pieces() != 4 || p.Size() != int64(len(big())) {
		t.Errorf("%d pieces", p.Pieces())
	}
	r.write(p, big(), 3, 1)
	r.wantMissing(p, 0, 2)
	r.wantNone(cached, big())
	if err := p.Finish(); !errors.Is(err, ErrIncomplete) {
		t.Error(err)
	}
	r.write(p, big(), 1, 0, 2)
	r.wantMissing(p)
	if err := errors.Join(p.Finish(), p.Finish(), p.Close(), p.Abandon()); err != nil {
		t.Error(err)
	}
	r.want(cached, big())
	if u := r.Usage(Cache); u.Blobs != 1 || u.Bytes != charge(int64(len(big()))) || len(r.names()) != 1 {
		t.Errorf("%+v, %q", u, r.names())
	}
	again := r.begin(cached, big())
	r.wantMissing(again)
	if err := errors.Join(again.WritePiece(3, r.pieceOf(big(), 3)), again.Finish(), again.Close()); err != nil {
		t.Error(err)
	}
	other := files.Blob{Hash: files.HashOf([]byte(big())), Size: 1}
	if _, err := r.Begin(cached, other); !errors.Is(err, ErrWrongHash) {
		t.Errorf("another size: %v", err)
	}
}

// TestRealPieces has pieces of the size that transfers have.
func TestRealPieces(t *testing.T) {
	r := testRig(t)
	content := text("x", 2*files.PieceBytes+5)
	p := r.begin(own, content)
	r.write(p, content, 2, 1)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = r.begin(own, content)
	r.wantMissing(p, 0)
	r.write(p, content, 0)
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	r.want(own, content)
}

func TestSmallPartials(t *testing.T) {
	r := testRig(t)
	for _, content := range []string{"", "x", text("x", files.PieceBytes)} {
		r.fill(own, content)
		r.want(own, content)
	}
	p := r.begin(own, "y")
	r.write(p, "y", 0)
	if err := p.Close(); err != nil { // there is nothing worth to be resumed
		t.Fatal(err)
	}
	if p = r.begin(own, "y"); len(p.Missing()) != 1 {
		t.Error("it is resumed")
	}
	if err := p.Abandon(); err != nil || len(r.names()) != 3 {
		t.Errorf("%v, %q", err, r.names())
	}
}

// A transfer goes on behind a close, a kill and a restart; a piece that a crash has torn is missing.
func TestPartialIsResumed(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	p := r.begin(cached, big())
	r.write(p, big(), 2)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = r.begin(cached, big())
	r.wantMissing(p, 0, 1, 3)
	r.write(p, big(), 0, 3)
	_ = p.closeFiles() // as a kill does
	r.reopen()
	part := filepath.Join(r.dir, fileOf(ref(cached, big()))+partExt)
	if err := writeAt(part, "torn", 10); err != nil {
		t.Fatal(err)
	}
	if u := r.Usage(Cache); u.Bytes != charge(int64(len(big()))) || u.Blobs != 1 {
		t.Errorf("%+v", u)
	}
	p = r.begin(cached, big())
	r.wantMissing(p, 0, 1)
	r.write(p, big(), 0, 1)
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	r.want(cached, big())
}

func TestPartialWithDamagedRows(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	for name, damage := range map[string]func(path string) error{
		"gone":     os.Remove,
		"short":    func(path string) error { return os.Truncate(path, rowsHead+rowSize) },
		"long":     func(path string) error { return os.Truncate(path, 1<<20) },
		"of other": func(path string) error { return writeAt(path, "\x01", 8) },
		"zeros":    func(path string) error { return writeAt(path, strings.Repeat("\x00", 8), 0) },
	} {
		p := r.begin(cached, big())
		r.write(p, big(), 1)
		if err := errors.Join(p.Close(), damage(filepath.Join(r.dir, fileOf(ref(cached, big()))+rowsExt))); err != nil {
			t.Fatal(err)
		}
		p = r.begin(cached, big())
		if len(p.Missing()) != 4 {
			t.Errorf("%s: missing %v", name, p.Missing())
		}
		if err := p.Abandon(); err != nil {
			t.Fatal(err)
		}
	}
	if u := r.Usage(Cache); u.Bytes != 0 || u.Blobs != 0 || len(r.names()) != 0 {
		t.Errorf("%+v, %q", u, r.names())
	}
}

// What has another hash than was said is removed, and can be sent again.
func TestWrongHash(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	p := r.begin(own, big())
	r.write(p, big(), 0, 1, 2)
	wrong := bytes.ToUpper(r.pieceOf(big(), 3))
	if err := p.WritePiece(3, wrong); err != nil {
		t.Fatal(err)
	}
	if err := p.Finish(); !errors.Is(err, ErrWrongHash) {
		t.Fatal(err)
	}
	if err := errors.Join(p.Close(), p.Abandon()); err != nil {
		t.Error(err)
	}
	if err := p.Finish(); !errors.Is(err, ErrClosed) {
		t.Errorf("again: %v", err)
	}
	if len(r.names()) != 0 || r.Usage(Own).Bytes != 0 {
		t.Errorf("%q, %+v", r.names(), r.Usage(Own))
	}
	r.fill(own, big())
	r.want(own, big())
}

func TestPiecesAreChecked(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	p := r.begin(own, big())
	for i, data := range map[int][]byte{-1: nil, 0: make([]byte, 7), 3: make([]byte, shortPiece), 4: nil} {
		if err := p.WritePiece(i, data); !errors.Is(err, ErrWrongHash) {
			t.Errorf("piece %d: %v", i, err)
		}
	}
	if _, err := r.Begin(own, files.BlobOf([]byte(big()))); !errors.Is(err, ErrBusy) {
		t.Errorf("another one fills it: %v", err)
	}
	if _, err := r.Begin(own, files.Blob{Size: -1}); !errors.Is(err, files.ErrSize) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.WritePiece(0, r.pieceOf(big(), 0)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	other, err := r.Begin(own, files.Blob{Hash: files.HashOf([]byte(big())), Size: 2*shortPiece + 1})
	if err != nil || other.Pieces() != 3 || len(other.Missing()) != 3 {
		t.Errorf("of another size: %v", err)
	}
	if u := r.Usage(Own); u.Bytes != block || u.Blobs != 1 {
		t.Errorf("%+v", u)
	}
	if err = other.Abandon(); err != nil {
		t.Fatal(err)
	}
}

// A partial blob that nobody fills goes like any other.
func TestIdlePartialGoes(t *testing.T) {
	r := newRig(t, t.TempDir(), limitsOf(Limit{}, Limit{charge(int64(len(big()))), 0}, Limit{})).withPieces(shortPiece)
	defer r.Close()
	p := r.begin(cached, big())
	r.write(p, big(), 1)
	if _, err := r.Put(t.Context(), cached, strings.NewReader("x"), 1); !errors.Is(err, ErrFull) {
		t.Errorf("while it is filled: %v", err)
	}
	r.Pin("attempt", ref(cached, big()))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Put(t.Context(), cached, strings.NewReader("x"), 1); !errors.Is(err, ErrFull) {
		t.Errorf("while it is pinned: %v", err)
	}
	r.Unpin("attempt")
	r.put(cached, "x")
	if len(r.names()) != 1 {
		t.Errorf("%q", r.names())
	}
}

// Who fills a blob and does not want it any more has it gone at once, unless somebody else pins or fills it.
func TestAbandonedPartialGoes(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	whole := "whole"
	r.put(own, whole)
	before := r.Usage(Own).Bytes
	p := r.begin(own, big())
	r.write(p, big(), 1)
	abandon := func(left int) {
		t.Helper()
		if err := r.Abandon(ref(own, big()), ref(own, whole), ref(own, "never there")); err != nil || len(r.names()) != left {
			t.Errorf("%v, left %q", err, r.names())
		}
	}
	abandon(3) // with its rows
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	r.Pin("job", ref(own, big()))
	abandon(3)
	r.Unpin("job")
	abandon(1)
	if got := r.Usage(Own); got.Bytes != before || got.Blobs != 1 {
		t.Errorf("%+v, had %d bytes", got, before)
	}
	p = r.begin(own, big())
	if len(p.Missing()) < 2 {
		t.Errorf("it begins with all but %v", p.Missing())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// A sync that failed leaves nobody with pieces that may not be there.
func TestSyncFails(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	content := strings.Repeat("x", unsyncedMax*shortPiece) + "the end"
	p := r.begin(own, content)
	r.fault = func(at point) error {
		if at == pointSync {
			return syscall.ENOSPC
		}
		return nil
	}
	for i := range unsyncedMax {
		if err := p.WritePiece(i, r.pieceOf(content, i)); errors.Is(err, ErrFull) != (i == unsyncedMax-1) {
			t.Errorf("piece %d: %v", i, err)
		}
	}
	if len(p.Missing()) != unsyncedMax+1 {
		t.Errorf("missing %v", p.Missing())
	}
	r.fault = nil
	r.write(p, content, p.Missing()...)
	r.fault = func(at point) error {
		if at == pointSync {
			return syscall.EIO
		}
		return nil
	}
	if err := p.Finish(); !errors.Is(err, syscall.EIO) || len(p.Missing()) == 0 {
		t.Errorf("%v, missing %v", err, p.Missing())
	}
	r.fault = nil
	r.write(p, content, p.Missing()...)
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	r.want(own, content)
}

// A piece that is written while a sync of others fails is missing, too: the kernel tells of lost pages once.
func TestWrittenWhileASyncFails(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	content := strings.Repeat("x", 2*unsyncedMax*shortPiece)
	p := r.begin(own, content)
	r.write(p, content, 0, 1, 2, 3, 4, 5, 6)
	late := make(chan error)
	written, go7 := make(chan struct{}), make(chan struct{})
	rows := 0
	r.fault = func(at point) error {
		switch at {
		case pointRow:
			if rows++; rows == 1 { // of the late piece, which is written and waits
				close(written)
				<-go7
			}
		case pointSync:
			return syscall.EIO
		default:
		}
		return nil
	}
	go func() { late <- p.WritePiece(8, r.pieceOf(content, 8)) }()
	<-written
	if err := p.WritePiece(7, r.pieceOf(content, 7)); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	close(go7)
	if err := <-late; !errors.Is(err, errSync) {
		t.Error(err)
	}
	if len(p.Missing()) != p.Pieces() {
		t.Errorf("missing %v", p.Missing())
	}
	r.fault = nil
	r.write(p, content, p.Missing()...)
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	r.want(own, content)
}

package uploads

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/cloudshare/cloudshare/node/files"
)

// Upload is one that somebody has, until Release.
type Upload struct {
	of  *Uploads
	key key
	f   *os.File // head, then the bytes behind the last whole piece

	once sync.Once
}

// head stands before the tail: which piece the bytes begin, how many there are, and their checksum. It is written
// behind the bytes, so that it never says more than is there.
const head = 12

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pieces are buffers of one piece.
var pieces = sync.Pool{New: func() any { return new([files.PieceBytes]byte) }}

// Release lets others have the upload. It may be called again, and after End.
func (t *Upload) Release() {
	t.once.Do(func() {
		_ = t.f.Close() // written with WriteAt: nothing is held back
		t.of.mu.Lock()
		defer t.of.mu.Unlock()
		if s := t.of.all[t.key]; s != nil {
			s.busy, s.used = false, t.of.cfg.Now()
		}
	})
}

// End forgets the upload: its blob is whole, or not wanted.
func (t *Upload) End() {
	t.once.Do(func() {
		_ = t.f.Close()
		t.of.mu.Lock()
		defer t.of.mu.Unlock()
		t.of.drop(t.key)
	})
}

// Offset returns how many bytes of the upload are there.
func (t *Upload) Offset(p Partial) (int64, error) {
	at := first(p)
	if at == p.Pieces() {
		return p.Size(), nil
	}
	buf, done := buffer()
	defer done()
	have, err := t.load(at, buf[:length(p, at)])
	return int64(at)*files.PieceBytes + int64(have), err
}

// Write takes what comes next of the upload, to the end of r or of the blob, which is whole then. It returns how many
// bytes are there now, also with an error: what has come before a cut stays. It holds one piece in memory.
func (t *Upload) Write(p Partial, r io.Reader) (int64, error) {
	buf, done := buffer()
	defer done()
	at := first(p)
	for at < p.Pieces() {
		piece := buf[:length(p, at)]
		whole, have, err := t.fill(p, at, piece, r)
		if err != nil || !whole {
			return int64(at)*files.PieceBytes + int64(have), err
		}
		at = first(p)
	}
	return p.Size(), p.Finish()
}

// fill reads the rest of a piece and gives it to the store, or keeps what has come of it.
func (t *Upload) fill(p Partial, at int, piece []byte, r io.Reader) (whole bool, have int, err error) {
	had, err := t.load(at, piece)
	if err != nil {
		return false, 0, err
	}
	n, err := io.ReadFull(r, piece[had:])
	have = had + n
	if have == len(piece) {
		if err = p.WritePiece(at, piece); err == nil {
			return true, have, nil
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if kept := t.save(at, piece[:have], had); kept != nil {
		return false, had, errors.Join(kept, err)
	}
	return false, have, err
}

// first returns the first piece that is not there.
func first(p Partial) int {
	if missing := p.Missing(); len(missing) > 0 {
		return missing[0]
	}
	return p.Pieces()
}

// length returns how many bytes a piece has.
func length(p Partial, at int) int64 {
	return min(files.PieceBytes, p.Size()-int64(at)*files.PieceBytes)
}

func buffer() (b *[files.PieceBytes]byte, done func()) {
	b, _ = pieces.Get().(*[files.PieceBytes]byte)
	return b, func() { pieces.Put(b) }
}

// load reads what is there of a piece. Bytes that a crash of the machine has torn, or of another piece, are none.
func (t *Upload) load(at int, piece []byte) (int, error) {
	var h [head]byte
	if _, err := t.f.ReadAt(h[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		return 0, fmt.Errorf("read upload of %s: %w", t.key.blob.Hash, err)
	}
	n := int(binary.LittleEndian.Uint32(h[4:]))
	if binary.LittleEndian.Uint32(h[:]) != uint32(at) || n > len(piece) {
		return 0, nil
	}
	_, err := t.f.ReadAt(piece[:n], head)
	torn := err == nil && crc32.Checksum(piece[:n], castagnoli) != binary.LittleEndian.Uint32(h[8:])
	if errors.Is(err, io.EOF) || torn {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read upload of %s: %w", t.key.blob.Hash, err)
	}
	return n, nil
}

// save keeps the bytes of a piece, of which the first had are there already.
func (t *Upload) save(at int, tail []byte, had int) error {
	var h [head]byte
	binary.LittleEndian.PutUint32(h[:], uint32(at))
	binary.LittleEndian.PutUint32(h[4:], uint32(len(tail)))
	binary.LittleEndian.PutUint32(h[8:], crc32.Checksum(tail, castagnoli))
	_, err := t.f.WriteAt(tail[had:], head+int64(had))
	if err == nil {
		_, err = t.f.WriteAt(h[:], 0)
	}
	if err != nil {
		return asFull(fmt.Errorf("keep what has come of the upload of %s: %w", t.key.blob.Hash, err))
	}
	return nil
}

// Package walfile keeps a store's newest records in a small file of fixed size
// until the store has them (beside steps 1, 3 and 6 of a job's way). The file's
// blocks exist and are written over, so that making a record durable takes one
// sync of data, where a B+tree takes two and several pages. It knows no store.
//
// The store notes the generation of the records that it holds, in the same
// commit or behind it; see [Open] for what that is good for.
package walfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Errors of this package.
var (
	// ErrDamaged: the file is not what was synced to it, or not the one that
	// belongs to the store.
	ErrDamaged = errors.New("damaged")
	// ErrFull: no room; Reset makes it once the store has the records.
	ErrFull = errors.New("write-ahead file is full")
)

// File is open for appending. It is not safe for concurrent use.
type File struct {
	f    *os.File
	path string
	size int64
	end  int64 // of the frames; the next one goes there
	gen  uint64
	next uint64 // number of the next frame in its generation, 0 = the head
	buf  []byte
	// NoSync leaves records to the kernel, for tests whose crashes keep them.
	NoSync bool
	// broken: a write or a sync failed. What the disk holds since is not known, and
	// a later sync would not tell (the kernel forgets), so nothing works any more.
	broken error
}

// A frame is a head of headSize bytes, the record, and zeros up to a multiple of
// align:
//
//	u32 magic · u32 length · u64 generation · u64 number · u32 crc · u32 0
//
// The crc (Castagnoli) covers all before it and the record. Frame 0 of a
// generation is empty and lies at the file's beginning: it makes what follows of
// older generations void.
const (
	headSize = 32
	align    = 8
	magic    = 0x6c617743 // "Cwal"
	minSize  = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open opens the file at path and returns the records that were appended since
// the last Reset. The records point into memory of their own.
//
// noted is the generation that the store has noted, 0 if none. Then the file may
// be missing: it is made, of size bytes, and the caller notes its generation
// before it appends anything. Otherwise the file must be of that generation or
// the next one, whose records the store does not have yet. Any other is of another
// copy of the store: ErrDamaged, as is a file that is missing.
func Open(path string, size int64, noted uint64) (*File, [][]byte, error) {
	if noted == 0 {
		if err := create(path, size); err != nil {
			return nil, nil, fmt.Errorf("make %s: %w", path, err)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s is %w: it is missing", path, ErrDamaged)
	}
	if err != nil {
		return nil, nil, err
	}
	w := &File{f: f, path: path}
	records, err := w.load()
	if err == nil && !w.belongs(noted) {
		err = fmt.Errorf("%w: it is of generation %d, and its store of %d: they are copies of different moments", ErrDamaged, w.gen, noted)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return w, records, nil
}

// belongs reports whether the file is that of a store that has noted a generation.
func (w *File) belongs(noted uint64) bool {
	if noted == 0 { // made, and the store was not told of it any more
		return w.gen == 1 && w.Empty()
	}
	return w.gen == noted || w.gen == noted+1
}

// create makes the file, whole or not at all, unless it is there.
func create(path string, size int64) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	image := make([]byte, max(size, minSize)) // written, not reserved: later writes change no metadata
	copy(image, frame(nil, 1, 0, nil))
	_, err = f.Write(image)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// frame appends a frame to dst.
func frame(dst []byte, gen, number uint64, record []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, magic)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(record)))
	dst = binary.LittleEndian.AppendUint64(dst, gen)
	dst = binary.LittleEndian.AppendUint64(dst, number)
	sum := crc32.Update(crc32.Checksum(dst[at:], castagnoli), castagnoli, record)
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, record...)
	return append(dst, make([]byte, padding(len(record)))...)
}

func padding(n int) int { return (align - n%align) % align }

// Generation of the records that are appended now; from 1, Reset raises it.
func (w *File) Generation() uint64 { return w.gen }

// Fits reports whether there is room for a record of n bytes.
func (w *File) Fits(n int) bool { return int64(headSize+n+padding(n)) <= w.size-w.end }

// Empty reports whether nothing was appended since the last Reset.
func (w *File) Empty() bool { return w.next <= 1 }

// Append makes a record durable. Errors: ErrFull; after any other one the file
// works no more.
func (w *File) Append(record []byte) error {
	if !w.Fits(len(record)) {
		return fmt.Errorf("append to %s: %w", w.path, ErrFull)
	}
	return w.write(w.end, record)
}

// Reset makes room, durably: the records so far are void. REQUIRES: the store
// holds them, synced, and has noted their generation.
func (w *File) Reset() error {
	w.gen, w.next = w.gen+1, 0
	return w.write(0, nil)
}

func (w *File) write(at int64, record []byte) error {
	if w.broken != nil {
		return w.broken
	}
	w.buf = frame(w.buf[:0], w.gen, w.next, record)
	_, err := w.f.WriteAt(w.buf, at)
	if err == nil {
		err = w.sync()
	}
	if err != nil {
		w.broken = fmt.Errorf("write %s: %w", w.path, err)
		return w.broken
	}
	w.end, w.next = at+int64(len(w.buf)), w.next+1
	return nil
}

// sync is fdatasync: neither size nor place of a block changes.
func (w *File) sync() error {
	for !w.NoSync {
		if err := unix.Fdatasync(int(w.f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return nil
}

// Close closes the file; what was appended stays.
func (w *File) Close() error { return w.f.Close() }

// Package walfile keeps a store's newest records in a small file of fixed size
// until the store has them (beside steps 1, 3 and 6 of a job's way). The file's
// blocks exist and are written over, so that making a record durable takes one
// sync of data, where a B+tree takes two and several pages. It knows no store.
//
// The store notes the generation of the records that it holds, in the same
// commit or behind it; see [Open] for what that is good for.
package walfile

import (
	"crypto/rand"
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
//	u32 magic · u32 length · u64 generation · u64 number · u32 crc · u32 size
//
// The crc (Castagnoli) covers all before it and the record. Frame 0 of a
// generation is empty and lies at the file's beginning: it makes what follows of
// older generations void. Its size is the file's, in any other frame it is 0.
const (
	headSize = 32
	align    = 8
	magic    = 0x6c617743 // "Cwal"
	minSize  = 4096
	// firstBits of a file's first generation are 1, the others are random: the file
	// of another store does not fit, and nobody can write a record that looks like a
	// frame of a generation to come.
	firstBits = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open opens the file at path and returns the records that were appended since
// the last Reset. The records point into memory of their own.
//
// noted is the generation that the store has noted, 0 if none. Then the file may
// be missing: it is made, of size bytes, and the caller notes Held before it appends
// anything. Otherwise the file must be of that generation, whose records the store
// has (they are not returned: what it took behind them may be newer), or of the next
// one, whose records it does not have yet. Any other is of another store, or of
// another copy of it: ErrDamaged, as is a file that is missing.
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
		err = fmt.Errorf("%w: it is of generation %d, and its store of %d: they are of two stores, or copies of different moments", ErrDamaged, w.gen, noted)
	}
	if err == nil && w.gen == noted {
		records, err = nil, w.Reset()
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return w, records, nil
}

// belongs reports whether the file is that of a store that has noted a generation.
func (w *File) belongs(noted uint64) bool {
	if noted == 0 { // made, and the store was not told of it any more
		return w.gen%(1<<firstBits) == 1 && w.Empty()
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
	copy(image, head(firstGeneration(), int64(len(image))))
	_, err = f.Write(image)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = os.Remove(path + ".new") // it may fill the disk
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

// head is frame 0 of a generation.
func head(gen uint64, size int64) []byte {
	b := frame(nil, gen, 0, nil)
	binary.LittleEndian.PutUint32(b[headSize-4:], uint32(size))
	return b
}

func firstGeneration() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[3:]) // never fails
	return (binary.BigEndian.Uint64(b[:])|1<<40)<<firstBits | 1
}

func padding(n int) int { return (align - n%align) % align }

// Generation of the records that are appended now; from 1, Reset raises it.
func (w *File) Generation() uint64 { return w.gen }

// Held is the generation that a store notes which holds all records of before this
// one, and none of it.
func (w *File) Held() uint64 { return w.gen - 1 }

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
	w.buf = frame(w.buf[:0], w.gen, w.next, record)
	return w.write(w.end)
}

// Reset makes room, durably: the records so far are void. REQUIRES: the store
// holds them, synced, and has noted their generation.
func (w *File) Reset() error {
	w.gen, w.next, w.buf = w.gen+1, 0, append(w.buf[:0], head(w.gen+1, w.size)...)
	return w.write(0)
}

// write makes what is in buf durable.
func (w *File) write(at int64) error {
	if w.broken != nil {
		return w.broken
	}
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

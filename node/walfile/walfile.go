// Package walfile keeps a store's newest records in a small file of fixed size until the store has
// them (it serves steps 1, 3 and 6 of a job's way). The file's blocks are allocated once and
// overwritten, so making a record durable takes one data sync; a B+tree needs two, and writes several
// pages. The package knows nothing of the store.
//
// In the commit that takes records over, or after it, the store notes their generation; [Open] says
// what it uses the note for.
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
	// ErrDamaged means that the file is not what was synced to it, or belongs to another store.
	ErrDamaged = errors.New("damaged")
	// ErrFull means that there is no room; Reset makes room once the store has the records.
	ErrFull = errors.New("write-ahead file is full")
)

// File is open for appending. It is not safe for concurrent use.
type File struct {
	f    *os.File
	path string
	size int64
	end  int64 // of the frames; the next frame is written here
	gen  uint64
	next uint64 // number of the next frame in its generation; 0 is the generation's first frame
	buf  []byte
	direct
	// NoSync leaves records in the kernel's cache, for tests that do not crash the machine.
	NoSync bool
	// broken is the error of a failed write or sync. The disk's content is unknown from then on, and
	// a later sync would not report it (the kernel forgets), so every later write returns this error.
	broken error
}

// A frame is a head of headSize bytes, the record, and zeros up to a multiple of align:
//
//	u32 magic · u32 length · u64 generation · u64 number · u32 crc · u32 size
//
// The crc (Castagnoli) covers everything before it and the record. Frame 0 of a generation is empty
// and lies at the beginning of the file: it invalidates the frames of older generations behind it. Its
// size is the file's; in other frames size is 0.
const (
	headSize = 32
	align    = 8
	magic    = 0x6c617743 // "Cwal"
	minSize  = 4096
	// firstBits is how many low bits of the first generation are fixed (to 1); the others are random.
	// So the file of another store does not fit, and nobody can write a record that looks like a
	// frame of a future generation.
	firstBits = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open opens the file at path and returns the records that were appended since the last Reset. The
// records do not share memory with the File.
//
// noted is the generation that the store has noted, 0 if none. With 0 the file may be missing: Open
// creates it with size bytes, and the caller notes Held before it appends anything. Otherwise the file
// must be of one of two generations: noted, whose records the store has (they are not returned, for
// the store may have taken newer ones since), or the next, whose records the store does not have yet.
// Any other file belongs to another store, or to another copy of this one: Open returns ErrDamaged,
// as it does when the file is missing.
func Open(path string, size int64, noted uint64) (*File, [][]byte, error) {
	if noted == 0 {
		if err := create(path, size); err != nil {
			return nil, nil, fmt.Errorf("make %s: %w", path, err)
		}
	}
	w, records, err := open(path)
	if err == nil && !w.belongs(noted) {
		err = fmt.Errorf("%w: it is of generation %d, and its store of %d: "+
			"they are of two stores, or copies of different moments", ErrDamaged, w.gen, noted)
	}
	if err == nil && w.gen == noted {
		records, err = nil, w.Reset()
	}
	return w.opened(records, err)
}

// OpenAlone is Open for a store that notes nothing, since to take a record again changes nothing: it returns
// the records of whatever generation the file is. It makes a file that is missing.
func OpenAlone(path string, size int64) (*File, [][]byte, error) {
	if err := create(path, size); err != nil {
		return nil, nil, fmt.Errorf("make %s: %w", path, err)
	}
	w, records, err := open(path)
	return w.opened(records, err)
}

// open opens a file that is there. It returns the File on an error, too, to be closed.
func open(path string) (*File, [][]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s is %w: it is missing", path, ErrDamaged)
	}
	if err != nil {
		return nil, nil, err
	}
	w := &File{f: f, path: path}
	records, err := w.load()
	return w, records, err
}

// opened is how an Open ends.
func (w *File) opened(records [][]byte, err error) (*File, [][]byte, error) {
	if err == nil {
		return w, records, nil
	}
	if w != nil {
		err = errors.Join(fmt.Errorf("read %s: %w", w.path, err), w.f.Close())
	}
	return nil, nil, err
}

// belongs reports whether the file fits a store that has noted a generation.
func (w *File) belongs(noted uint64) bool {
	if noted == 0 { // created, but the process ended before the store noted it
		return w.gen%(1<<firstBits) == 1 && w.Empty()
	}
	return w.gen == noted || w.gen == noted+1
}

// create makes the file, whole or not at all, unless it exists.
func create(path string, size int64) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	image := make([]byte, max(size, minSize)) // written, not only reserved: later writes change no metadata
	copy(image, head(firstGeneration(), int64(len(image))))
	_, err = f.Write(image)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = os.Remove(path + ".new") // it may be filling the disk
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

// head returns frame 0 of a generation.
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

// Generation returns the generation of the records that are appended now. It starts at 1 in its low
// bits; Reset raises it.
func (w *File) Generation() uint64 { return w.gen }

// Held returns the generation to note by a store that holds all records from before this generation
// and none of it.
func (w *File) Held() uint64 { return w.gen - 1 }

// Fits reports whether there is room for a record of n bytes.
func (w *File) Fits(n int) bool { return int64(headSize+n+padding(n)) <= w.size-w.end }

// Empty reports whether nothing was appended since the last Reset.
func (w *File) Empty() bool { return w.next <= 1 }

// Append makes a record durable. It returns ErrFull if there is no room; after any other error the
// file accepts no more writes.
func (w *File) Append(record []byte) error {
	if !w.Fits(len(record)) {
		return fmt.Errorf("append to %s: %w", w.path, ErrFull)
	}
	w.buf = frame(w.buf[:0], w.gen, w.next, record)
	return w.write(w.end)
}

// Reset makes room, durably, by invalidating the records so far. REQUIRES: the store holds them,
// synced, and has noted their generation.
func (w *File) Reset() error {
	w.gen, w.next, w.buf = w.gen+1, 0, append(w.buf[:0], head(w.gen+1, w.size)...)
	return w.write(0)
}

// Wipe is Reset, behind which nothing of the records can be read in the file.
func (w *File) Wipe() error {
	end := w.end
	err := w.Reset()
	if err != nil {
		return err
	}
	if err = w.throughCache(func() error { return w.zero(w.end, end) }); err != nil {
		w.broken = fmt.Errorf("wipe %s: %w", w.path, err)
	}
	return w.broken
}

// zero has a stretch of the file be zeros, durably.
func (w *File) zero(from, to int64) error {
	zeros := make([]byte, min(to-from, 1<<20))
	for at := from; at < to; at += int64(len(zeros)) {
		if _, err := w.f.WriteAt(zeros[:min(int64(len(zeros)), to-at)], at); err != nil {
			return err
		}
	}
	return w.sync()
}

// write writes buf at an offset and makes it durable.
func (w *File) write(at int64) error {
	if w.broken != nil {
		return w.broken
	}
	var err error
	switch {
	case w.blocks == nil:
		err = w.writeCached(at)
	case at == 0:
		err = w.resetDirect()
	default:
		err = w.appendDirect()
	}
	if err != nil {
		w.broken = fmt.Errorf("write %s: %w", w.path, err)
		return w.broken
	}
	w.end, w.next = at+int64(len(w.buf)), w.next+1
	return nil
}

// writeCached writes what is in buf and no byte more.
func (w *File) writeCached(at int64) error {
	if _, err := w.f.WriteAt(w.buf, at); err != nil {
		return err
	}
	return w.sync()
}

// sync calls fdatasync: neither the file's size nor the place of a block changes.
func (w *File) sync() error {
	for !w.NoSync {
		if err := unix.Fdatasync(int(w.f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return nil
}

// Close closes the file; the appended records stay in it.
func (w *File) Close() error { return w.f.Close() }

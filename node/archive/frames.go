package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// A segment is a file of frames: length (4 bytes), CRC-32C of the record (4
// bytes), record. What a fault of the disk or a crash made unreadable lies
// between whole frames and is passed over.

const (
	frameHead = 8
	// maxSearch bounds the bytes whose checksum is computed to find the next
	// frame behind damage.
	maxSearch = 256 << 20
	// searchWindow is how much of a file is looked at in one piece for it.
	searchWindow = 256 << 10
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

func appendFrame(b, record []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(record)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(record, crcTable))
	return append(b, record...)
}

// stretch is a part of a file.
type stretch struct{ from, to int64 }

// walker goes through the frames of a file's first limit bytes.
type walker struct {
	src   io.ReaderAt
	limit int64
	in    *bufio.Reader
	buf   []byte
	left  int64 // of maxSearch
}

// walkFrames calls each for every whole record, with the place of its frame's
// first byte and of the one after its last, and damaged for every stretch
// between them. A record is valid until each returns. A record that each finds
// malformed is damage, too; its other errors end the walk, as faults of the disk do.
func walkFrames(src io.ReaderAt, limit int64, each func(record []byte, at stretch) error, damaged func(stretch)) error {
	w := walker{src: src, limit: limit, left: maxSearch}
	w.seek(0)
	for at := int64(0); at < limit; {
		record, err := w.read(limit - at)
		end := at + frameHead + int64(len(record))
		if err == nil {
			err = each(record, stretch{at, end})
		} else {
			end = 0
		}
		if errors.Is(err, errBadRecord) {
			if end == 0 {
				if end, err = w.find(at + 1); err != nil {
					return err
				}
				w.seek(end)
			}
			damaged(stretch{at, end})
		} else if err != nil {
			return err
		}
		at = end
	}
	return nil
}

// seek goes on at a place of the file.
func (w *walker) seek(at int64) {
	section := io.NewSectionReader(w.src, at, w.limit-at)
	if w.in == nil {
		w.in = bufio.NewReaderSize(section, 64<<10)
	} else {
		w.in.Reset(section)
	}
}

// read returns the next record, of which room bytes can be there.
func (w *walker) read(room int64) ([]byte, error) {
	var fixed [frameHead]byte
	if _, err := io.ReadFull(w.in, fixed[:]); err != nil {
		return nil, asDamage(err)
	}
	n := binary.LittleEndian.Uint32(fixed[:])
	if n == 0 || n > maxRecord || int64(n) > room-frameHead {
		return nil, errBadRecord
	}
	w.buf = slices.Grow(w.buf[:0], int(n))[:n]
	if _, err := io.ReadFull(w.in, w.buf); err != nil {
		return nil, asDamage(err)
	}
	if crc32.Checksum(w.buf, crcTable) != binary.LittleEndian.Uint32(fixed[4:]) {
		return nil, errBadRecord
	}
	return w.buf, nil
}

// asDamage tells the end of a file from a fault of the disk.
func asDamage(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errBadRecord
	}
	return err
}

// find returns where the first whole frame begins at or after a place, the limit
// if there is none.
func (w *walker) find(from int64) (int64, error) {
	window := make([]byte, min(searchWindow, max(0, w.limit-from)))
	for at := from; at+frameHead < w.limit; {
		n, err := w.src.ReadAt(window[:min(int64(len(window)), w.limit-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n <= frameHead {
			break
		}
		for i := range n - frameHead {
			whole, err := w.whole(window[i:], at+int64(i))
			if err != nil {
				return 0, err
			}
			if whole {
				return at + int64(i), nil
			}
		}
		at += int64(n - frameHead)
	}
	return w.limit, nil
}

// whole reports whether a frame lies at a place of which b holds the first bytes.
func (w *walker) whole(b []byte, at int64) (bool, error) {
	n, kind := int64(binary.LittleEndian.Uint32(b)), b[frameHead]
	if n == 0 || n > maxRecord || n > w.limit-at-frameHead || kind < kindHead || kind > lastKind || n > w.left {
		return false, nil
	}
	w.left -= n
	sum := crc32.New(crcTable)
	if _, err := io.Copy(sum, io.NewSectionReader(w.src, at+frameHead, n)); err != nil {
		return false, err
	}
	return sum.Sum32() == binary.LittleEndian.Uint32(b[4:]), nil
}

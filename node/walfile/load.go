package walfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// maxFile bounds what is read into memory.
const maxFile = 64 << 20

// load reads the whole file and finds its records.
func (w *File) load() ([][]byte, error) {
	info, err := w.f.Stat()
	if err != nil {
		return nil, err
	}
	if w.size = info.Size(); w.size < minSize || w.size > maxFile {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrDamaged, w.size)
	}
	image := make([]byte, w.size)
	if _, err = io.ReadFull(io.NewSectionReader(w.f, 0, w.size), image); err != nil {
		return nil, err
	}
	records, err := w.scan(image)
	if err == nil {
		w.goDirect(image[w.end-w.end%block : w.end])
	}
	return records, err
}

// scan reads the frames of the generation that the file's first frame names, up to the first one that
// is not valid. That one was never written, or its write was cut off before anybody was told that it
// was durable. A later frame of the same generation proves otherwise: it was begun after the sync of
// the one before it. So the unreadable frame was durable and is damaged, whether the later one is
// whole or not.
func (w *File) scan(image []byte) (records [][]byte, err error) {
	head, ok := read(image)
	if !ok || head.number != 0 || len(head.record) != 0 || head.gen == 0 {
		return nil, fmt.Errorf("%w: its head does not read", ErrDamaged)
	}
	if size := binary.LittleEndian.Uint32(image[headSize-4:]); int64(size) != int64(len(image)) {
		return nil, fmt.Errorf("%w: it was made of %d bytes and has %d", ErrDamaged, size, len(image))
	}
	w.gen, w.next, w.end = head.gen, 1, int64(headSize)
	for {
		f, ok := read(image[w.end:])
		if !ok || f.gen != w.gen || f.number != w.next {
			break
		}
		records = append(records, f.record)
		w.end += int64(f.length)
		w.next++
	}
	for at := w.end; at < int64(len(image)); at += align {
		f, ok := readHead(image[at:])
		if !ok || f.gen != w.gen || f.number <= w.next {
			continue
		}
		if f.number-w.next <= uint64(len(image)/headSize) {
			return nil, fmt.Errorf("%w: record %d at byte %d does not read, but record %d was written behind it",
				ErrDamaged, w.next, w.end, f.number)
		}
	}
	return records, nil
}

// found is a frame that was read from the file.
type found struct {
	gen, number uint64
	record      []byte
	length      int // of the whole frame
}

// readHead reads the head of the frame at the beginning of b. It does not check whether the frame is whole.
func readHead(b []byte) (f found, ok bool) {
	if len(b) < headSize || binary.LittleEndian.Uint32(b) != magic {
		return f, false
	}
	f.gen, f.number = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	return f, true
}

// read reads the frame at the beginning of b and reports whether it is whole.
func read(b []byte) (f found, ok bool) {
	if f, ok = readHead(b); !ok {
		return f, false
	}
	n := uint64(binary.LittleEndian.Uint32(b[4:]))
	if n > uint64(len(b)-headSize) {
		return f, false
	}
	f.record = b[headSize : headSize+n : headSize+n]
	f.length = headSize + int(n) + padding(int(n))
	sum := crc32.Update(crc32.Checksum(b[:24], castagnoli), castagnoli, f.record)
	return f, f.length <= len(b) && sum == binary.LittleEndian.Uint32(b[24:])
}

package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// A segment is a file of frames: length (4 bytes), CRC-32C of the record (4
// bytes), record. The first record is a head. Segments are only appended to, and
// deleted whole, so reading needs no lock and a crash can only cut the end.

const frameHead = 8

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// segment is what is known of a file.
type segment struct {
	number  uint64
	created time.Time
	begin   int64 // size of the head
	size    int64 // whole frames, in bytes
}

func appendFrame(b, record []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(record)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(record, crcTable))
	return append(b, record...)
}

// frames calls f for each whole record of a file's first limit bytes and
// returns how many bytes were whole. A record is valid until f returns.
func frames(src io.Reader, limit int64, f func(record []byte) error) (whole int64, err error) {
	in := bufio.NewReaderSize(io.LimitReader(src, limit), 64<<10)
	var buf []byte
	for {
		var fixed [frameHead]byte
		if _, err := io.ReadFull(in, fixed[:]); err != nil {
			return whole, torn(err)
		}
		n := binary.LittleEndian.Uint32(fixed[:])
		if n == 0 || n > maxRecord {
			return whole, errBadRecord
		}
		buf = slices.Grow(buf[:0], int(n))[:n]
		if _, err := io.ReadFull(in, buf); err != nil {
			return whole, torn(err)
		}
		if crc32.Checksum(buf, crcTable) != binary.LittleEndian.Uint32(fixed[4:]) {
			return whole, errBadRecord
		}
		if err := f(buf); err != nil {
			return whole, err
		}
		whole += frameHead + int64(n)
	}
}

// torn tells the end of a file, whole or cut, from a fault of the disk.
func torn(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errBadRecord
	}
	return err
}

// lockDir takes the folder for this process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock archive: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock archive %s: %w", dir, ErrInUse), f.Close())
	}
	return f, nil
}

// load finds the segments and goes on with the last one.
func (a *Archive) load() error {
	numbers, err := segmentNumbers(a.cfg.Dir)
	if err != nil {
		return err
	}
	for i, n := range numbers {
		s := segment{number: n}
		last := i == len(numbers)-1
		if err := a.loadSegment(&s, last); err != nil {
			return fmt.Errorf("read archive %s: %w", a.path(n), err)
		}
		if s.begin == 0 { // not even its head is whole
			if err := os.Remove(a.path(n)); err != nil {
				return fmt.Errorf("remove a damaged segment: %w", err)
			}
			continue
		}
		a.segments = append(a.segments, s)
	}
	if a.federation != a.cfg.Federation { // its places mean nothing here
		a.place, a.saved = node.EventID{}, node.EventID{}
		clear(a.homes)
		return a.begin()
	}
	if len(a.segments) == 0 {
		return a.begin()
	}
	return a.reopen()
}

// reopen goes on with the last segment.
func (a *Archive) reopen() error {
	s := &a.segments[len(a.segments)-1]
	f, err := os.OpenFile(a.path(s.number), os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open archive: %w", err)
	}
	if err := f.Truncate(s.size); err != nil {
		return errors.Join(fmt.Errorf("cut a torn record off: %w", err), f.Close())
	}
	if _, err := f.Seek(s.size, io.SeekStart); err != nil {
		return errors.Join(fmt.Errorf("open archive: %w", err), f.Close())
	}
	a.file = f
	return nil
}

func segmentNumbers(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the archive's folder: %w", err)
	}
	var out []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".seg")
		if n, err := strconv.ParseUint(name, 10, 64); ok && err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// loadSegment reads a segment's head; of the last one everything, to know where
// to go on.
func (a *Archive) loadSegment(s *segment, last bool) error {
	f, err := os.Open(a.path(s.number))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	whole, err := frames(f, info.Size(), func(record []byte) error {
		if s.begin == 0 {
			s.begin = frameHead + int64(len(record))
			if a.loadHead(record, s) != nil {
				s.begin = 0
				return errBadRecord
			}
			if !last {
				return errStop
			}
			return nil
		}
		return a.loadRecord(record)
	})
	if s.size = whole; !last {
		s.size = info.Size()
	}
	if errors.Is(err, errStop) || errors.Is(err, errBadRecord) {
		return nil
	}
	return err
}

func (a *Archive) loadHead(record []byte, s *segment) error {
	if len(record) == 0 || record[0] != kindHead {
		return errBadRecord
	}
	h, err := readHead(record[1:])
	if err != nil {
		return err
	}
	s.created = h.created
	a.last, a.federation = h.last, h.federation
	clear(a.homes)
	a.place, a.saved = h.place, h.place
	for _, r := range h.homes {
		a.homes[homeKey{r.job, r.task}] = r.n
	}
	return nil
}

// loadRecord does what writing it did to the books.
func (a *Archive) loadRecord(record []byte) error {
	switch record[0] {
	case kindPlace:
		r := reader{b: record[1:]}
		p := r.place()
		if err := r.done(); err != nil {
			return err
		}
		a.place, a.saved = p, p
	case kindAttempt:
		var t Attempt
		if err := readAttempt(record[1:], &t); err != nil {
			return err
		}
		a.took(&t)
	case kindSeen:
		r := reader{b: record[1:]}
		k := homeKey{r.uint(), r.uint32()}
		if err := r.done(); err != nil {
			return err
		}
		a.forgetHome(k)
	}
	return nil
}

// begin starts a new segment. REQUIRES: a.mu held, or nobody else knows a.
func (a *Archive) begin() error {
	number := uint64(1)
	if n := len(a.segments); n > 0 {
		number = a.segments[n-1].number + 1
	}
	h := a.headNow()
	frame := appendFrame(nil, appendHead(nil, &h))
	f, err := os.OpenFile(a.path(number), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("begin a segment of the archive: %w", err)
	}
	if _, err = f.Write(frame); err != nil {
		return errors.Join(fmt.Errorf("begin a segment of the archive: %w", err), f.Close(), os.Remove(f.Name()))
	}
	if a.file != nil {
		err = errors.Join(a.sync(), a.file.Close())
	}
	a.file, a.dirty, a.saved = f, true, a.place
	size := int64(len(frame))
	a.segments = append(a.segments, segment{number: number, created: h.created, begin: size, size: size})
	return err
}

// write appends frames; what could be written only in part is cut off again.
// REQUIRES: a.mu held.
func (a *Archive) write(b []byte) error {
	s := &a.segments[len(a.segments)-1]
	if _, err := a.file.WriteAt(b, s.size); err != nil {
		return errors.Join(fmt.Errorf("write archive: %w", err), a.file.Truncate(s.size))
	}
	s.size += int64(len(b))
	a.dirty = true
	return nil
}

// expire deletes the oldest segments that are too old or too many. REQUIRES:
// a.mu held.
func (a *Archive) expire(now time.Time) error {
	var sum int64
	for _, s := range a.segments {
		sum += s.size
	}
	// What a segment holds ended before the next one began.
	for len(a.segments) > 1 && (sum > a.cfg.MaxBytes || now.Sub(a.segments[1].created) > a.cfg.Keep) {
		if err := os.Remove(a.path(a.segments[0].number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("delete an old segment of the archive: %w", err)
		}
		sum -= a.segments[0].size
		a.segments = slices.Delete(a.segments, 0, 1)
	}
	return nil
}

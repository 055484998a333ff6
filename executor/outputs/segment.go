package outputs

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cloudshare/cloudshare/executor"
)

// A segment file begins with its magic and its salt; frames follow.
const (
	segmentMagic = "CSOSEG1\n"
	segmentHead  = int64(len(segmentMagic) + len(salt{}))
)

// readSegmentHead returns io.EOF if the file is too short to have one.
func readSegmentHead(f *os.File) (own salt, size int64, err error) {
	st, err := f.Stat()
	if err != nil {
		return own, 0, err
	}
	var b [segmentHead]byte
	if _, err = f.ReadAt(b[:], 0); err != nil {
		return own, st.Size(), err
	}
	if string(b[:len(segmentMagic)]) != segmentMagic {
		return own, st.Size(), errors.New("no segment of kept outputs, or of another version")
	}
	copy(own[:], b[len(segmentMagic):])
	return own, st.Size(), nil
}

// nextMagic returns where the next frame may begin, len(b) if nowhere.
func nextMagic(b []byte) int {
	if at := bytes.Index(b, []byte(magic)); at >= 0 {
		return at
	}
	return len(b)
}

// newSegment makes a new active segment. REQUIRES: s.writing held, none is active.
func (s *Store) newSegment() (*segment, error) {
	g := &segment{number: s.next, size: segmentHead}
	s.next++
	_, _ = rand.Read(g.salt[:]) // never fails
	name := fileOf(g.number, segmentExt)
	f, err := s.folder.at().OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(append([]byte(segmentMagic), g.salt[:]...)); err == nil {
		if err = f.Sync(); err == nil {
			err = s.folder.sync(".")
		}
	}
	if err != nil {
		s.folder.remove(name)
		return nil, errors.Join(err, f.Close())
	}
	s.file, s.entries = f, nil
	s.mu.Lock()
	s.segments = append(s.segments, g)
	s.mu.Unlock()
	return g, nil
}

// seal ends the active segment: nothing is added to it any more.
// REQUIRES: s.writing held, or nobody else yet; one is active.
func (s *Store) seal() {
	g := s.segments[len(s.segments)-1]
	_ = s.file.Close() // synced before
	entries := s.entries
	s.file, s.entries = nil, nil
	s.folder.writeIndex(g, entries)
}

// readHead reads the head of the frame at a place of a segment's file.
func readHead(f io.ReaderAt, own salt, off int64) (head, error) {
	var b [maxHead]byte
	n, err := f.ReadAt(b[:], off)
	if err != nil && !errors.Is(err, io.EOF) {
		return head{}, err
	}
	h, ok := parseHead(b[:n], own)
	if !ok {
		return h, fmt.Errorf("output at byte %d: %w", off, executor.ErrDamaged)
	}
	return h, nil
}

package outputs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// load reads the folder: the indexes of sealed segments, all of the last one.
func (s *Store) load() error {
	numbers, err := s.list()
	if err != nil {
		return err
	}
	for i, number := range numbers {
		s.next = max(s.next, number+1)
		if err = s.loadSegment(number, i == len(numbers)-1); err != nil {
			s.passOver(number, err)
		}
	}
	s.forgetRemoved()
	return s.dropStrays()
}

// list returns the numbers of the segments, and puts aside what is nothing of ours.
func (s *Store) list() (numbers []uint32, err error) {
	names, err := readNames(s.folder.at(), ".")
	if err != nil {
		return nil, err
	}
	var gone []removed
	for _, name := range names {
		number, ext, ok := parseFile(name)
		r, was := parseRemoved(name)
		switch {
		case ok && ext == segmentExt:
			numbers = append(numbers, number)
		case was:
			gone = append(gone, r)
		case name == apartFolder, ok && ext == indexExt:
		case strings.HasSuffix(name, newExt):
			s.folder.remove(name)
		default:
			s.cfg.Aside(filepath.Join(s.cfg.Dir, name), errors.New("no file of kept outputs"))
		}
	}
	slices.Sort(numbers)
	slices.SortFunc(gone, func(a, b removed) int { return cmp.Compare(a.number, b.number) })
	if len(gone) > 0 { // the order of numbers is that of time
		s.next = max(s.next, gone[len(gone)-1].number+1)
	}
	s.loadRemoved(gone)
	s.dropIndexes(names, numbers)
	return numbers, nil
}

// dropIndexes removes those without a segment: a crash came between two steps.
func (s *Store) dropIndexes(names []string, numbers []uint32) {
	for _, name := range names {
		number, ext, ok := parseFile(name)
		if _, there := slices.BinarySearch(numbers, number); ok && ext == indexExt && !there {
			s.folder.remove(name)
		}
	}
}

// loadSegment enters one segment. An error says why it cannot be used at all.
func (s *Store) loadSegment(number uint32, last bool) error {
	f, err := s.folder.open(fileOf(number, segmentExt), os.O_RDWR)
	if err != nil {
		return err
	}
	own, size, err := readSegmentHead(f)
	if errors.Is(err, io.EOF) && size < segmentHead { // a crash before it held anything
		s.folder.remove(fileOf(number, segmentExt))
		return f.Close()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if !last {
		defer f.Close()
		g, entries, noIndex := s.folder.readIndex(fileOf(number, indexExt))
		g.number = number
		// One of another size is of an earlier life, and does not know what came since.
		if noIndex == nil && g.salt == own && g.size == size {
			s.enter(&g, entries)
			return nil
		}
	}
	g, entries, err := s.scanSegment(f, number, own, size)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.enter(g, entries)
	if !last {
		s.folder.writeIndex(g, entries)
		return nil
	}
	s.resume(f, g, entries, size)
	return nil
}

// resume makes the last segment the active one, without what was torn off.
func (s *Store) resume(f *os.File, g *segment, entries []entry, size int64) {
	s.file, s.entries = f, entries
	// What the last broker has written and not synced counts from here on.
	if err := f.Sync(); err != nil {
		s.cfg.Logger.Warn().Err(err).Str("segment", f.Name()).Msg("it cannot be synced; a new segment begins")
		s.seal()
		return
	}
	if g.size == size {
		return
	}
	s.cfg.Logger.Warn().Str("segment", f.Name()).Int64("bytes", size-g.size).
		Msg("the last output was not written to its end before a crash; it is cut off, and taken from its own file again")
	if err := f.Truncate(g.size); err != nil { // nothing may stand behind what is added
		s.cfg.Logger.Warn().Err(err).Str("segment", f.Name()).Msg("it cannot be cut off; a new segment begins")
		s.seal()
	}
}

// enter adds a segment and its entries.
func (s *Store) enter(g *segment, entries []entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := s.findSegment(g.number)
	s.segments = slices.Insert(s.segments, at, g)
	for _, e := range entries {
		if place, ok := s.index[e.key]; !ok || place < placeOf(g.number, e.off) {
			s.index[e.key] = placeOf(g.number, e.off)
		}
	}
}

func placeOf(number, off uint32) uint64 { return uint64(number)<<32 | uint64(off) }

// scanSegment reads all of a segment.
func (s *Store) scanSegment(f *os.File, number uint32, own salt, size int64) (*segment, []entry, error) {
	if size > segmentHead+maxSegment+maxFrame {
		return nil, nil, fmt.Errorf("%d bytes: no segment is so large", size)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, nil, err
	}
	g := &segment{number: number, salt: own, size: segmentHead}
	var entries []entry
	damaged := scan(b, own, func(off int64, h *head) {
		entries = appendEntries(entries, h.id, uint32(off), true)
		g.add(h)
		g.size = off + h.total()
	})
	if damaged > 0 {
		s.cfg.Logger.Warn().Str("segment", f.Name()).Int64("bytes", damaged).Int("outputs", g.count).
			Msg("a part of it is damaged, and its outputs are lost; the others can be read")
	}
	return g, entries, nil
}

// scan calls each with every frame of a segment. It returns how many bytes between
// frames are none; what stands behind the last one does not count.
func scan(b []byte, own salt, each func(off int64, h *head)) (damaged int64) {
	for at, good := int(segmentHead), int(segmentHead); at < len(b); {
		h, _, ok := parseFrame(b[at:], own)
		if !ok {
			at += 1 + nextMagic(b[at+1:])
			continue
		}
		damaged += int64(at - good)
		each(int64(at), &h)
		at += int(h.total())
		good = at
	}
	return damaged
}

// dropStrays removes streams in files of their own that no output names: a crash came
// between two steps of a removal.
func (s *Store) dropStrays() error {
	names, err := readNames(s.folder.at(), apartFolder)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	known, err := s.apartNames()
	if err != nil { // rather too many than one too few
		s.cfg.Logger.Warn().Err(err).Msg("large outputs that belong to nothing are not looked for")
		return nil
	}
	for _, name := range names {
		if !known[apartFolder+"/"+name] {
			s.folder.remove(apartFolder + "/" + name)
		}
	}
	return nil
}

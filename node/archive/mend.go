package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Damaged files are set aside in a folder of the archive's, the newest ones.
const (
	asideDir      = "damaged"
	maxAside      = 8
	maxAsideBytes = 64 << 20
)

// loadSegment takes over what a segment holds. A head that is lost is rebuilt
// from the books as the segments before left them. Damage costs what cannot be
// read, and of the last segment what follows the last whole batch: its events are
// read again from the log.
func (a *Archive) loadSegment(s *segment, last bool) {
	f, size, err := a.openSegment(s.number)
	if err != nil {
		a.cfg.Logger.Error().Err(err).Uint64("segment", s.number).Msg("a segment of the archive cannot be read and is left out")
		return
	}
	defer f.Close()
	c := inspect(f, size)
	keep := size
	if last {
		keep = c.commit
	}
	h := a.headFor(f, &c)
	a.useHead(&h)
	_ = walkFrames(f, keep, func(record []byte, _ stretch) error { return a.loadRecord(record) }, func(stretch) {})
	s.created, s.begin, s.size = h.created, c.begin, keep
	switch {
	case last && c.torn(f):
		if keep < size {
			a.cfg.Logger.Warn().Uint64("segment", s.number).Int64("bytes", size-keep).
				Msg("archive: the last write was cut short by a crash; what it held is read again from the log")
		}
	case size == 0:
		a.cfg.Logger.Warn().Uint64("segment", s.number).Msg("archive: an empty segment is removed")
		_ = os.Remove(a.path(s.number))
	case len(c.damaged) > 0:
		a.mend(s, f, &c, &h)
	}
}

// headFor returns a segment's head, or one that does for it.
func (a *Archive) headFor(f *os.File, c *content) head {
	if c.head != nil {
		return *c.head
	}
	h := a.headNow()
	h.federation, h.created = a.federation, c.ended
	if info, err := f.Stat(); err == nil && info.ModTime().After(h.created) { // the last write: not before the first
		h.created = info.ModTime()
	}
	return h
}

// mend writes a new segment with all that can be read of a damaged one, and keeps the
// damaged file. If there is no room for that, the segment is read around its damage. A
// segment that ends within a batch is then set aside whole, or cut there: the log repeats
// that batch, and a later start would count it twice.
func (a *Archive) mend(s *segment, f *os.File, c *content, h *head) {
	lost := lostBytes(c.damaged, int64(len(appendFrame(nil, encodeHead(h)))))
	a.lost += lost
	log := a.cfg.Logger.With().Uint64("segment", s.number).Int64("lost_bytes", lost).Logger()
	unfinished := s.size < c.size
	aside, moved, err := a.setAside(s.number, f)
	if err == nil && s.size > 0 {
		err = a.rewrite(s, f, h, lost, aside)
	}
	if moved && err != nil || aside != "" && (s.size == 0 || err != nil && unfinished) {
		s.size = 0
		if cause := os.Remove(a.path(s.number)); cause != nil && !moved {
			err = errors.Join(err, cause)
		}
	} else if err != nil && aside == "" && unfinished {
		err = errors.Join(err, os.Truncate(a.path(s.number), s.size))
	}
	log = log.With().Str("set_aside", aside).Logger()
	if err != nil {
		s.begin = 0 // nothing is appended to it
		log.Error().Err(err).Msg("archive: a damaged segment was not mended: free space on the disk, or see the reason, and restart the broker")
		return
	}
	log.Warn().Msg("archive: a segment was damaged: what can be read of it was kept, and the damaged file was set aside")
}

// rewrite puts a segment of the whole records in the place of the damaged one.
func (a *Archive) rewrite(s *segment, f *os.File, h *head, lost int64, aside string) error {
	b := appendHeads(nil, h)
	begin := int64(len(b))
	if lost > 0 {
		g := Gap{Since: h.last, Until: a.cfg.Now(), Reason: fmt.Sprintf("segment %d of the archive was damaged: %d bytes are lost; the damaged file is %s", s.number, lost, aside)}
		if g.Since.IsZero() {
			g.Since = h.created
		}
		b = appendFrame(b, appendGap(nil, &g))
	}
	err := walkFrames(f, s.size, func(record []byte, _ stretch) error {
		if record[0] != kindHead {
			b = appendFrame(b, record)
		}
		return nil
	}, func(stretch) {})
	if err != nil {
		a.cfg.Logger.Error().Err(err).Uint64("segment", s.number).Msg("archive: the rest of a segment cannot be read")
	}
	if err := replaceFile(a.path(s.number), b); err != nil {
		return err
	}
	s.begin, s.size = begin, int64(len(b))
	return nil
}

// replaceFile has a file hold b, or what it held.
func replaceFile(path string, b []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// setAside gives a damaged file a second name, or another one where the file
// system has no links: then it has moved.
func (a *Archive) setAside(n uint64, f *os.File) (path string, moved bool, err error) {
	dir := filepath.Join(a.cfg.Dir, asideDir)
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return "", false, err
	}
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	a.thinAside(dir, info.Size())
	at := a.cfg.Now()
	err = os.ErrExist
	for errors.Is(err, os.ErrExist) {
		path = filepath.Join(dir, at.UTC().Format("20060102T150405.000")+"-"+segmentName(n))
		err = os.Link(f.Name(), path)
		at = at.Add(time.Millisecond)
	}
	if err != nil {
		moved, err = true, os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", false, fmt.Errorf("set a damaged segment aside: %w", err)
	}
	return path, moved, syncDir(dir)
}

// thinAside removes the oldest damaged files until there is room for another.
func (a *Archive) thinAside(dir string, size int64) {
	files, sum := asideFiles(dir)
	for len(files) > 0 && (len(files) >= maxAside || sum+size > maxAsideBytes) {
		path := filepath.Join(dir, files[0].Name())
		if err := os.Remove(path); err != nil {
			a.cfg.Logger.Warn().Err(err).Msg("archive: an old damaged file was not removed")
		} else {
			a.cfg.Logger.Warn().Str("file", path).Msg("archive: the oldest damaged file was removed to make room for another")
		}
		sum -= files[0].Size()
		files = files[1:]
	}
}

// asideFiles returns the damaged files, oldest first, and their size.
func asideFiles(dir string) (files []os.FileInfo, sum int64) {
	entries, _ := os.ReadDir(dir) // none, if it cannot be read
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), ".seg") {
			files = append(files, info)
			sum += info.Size()
		}
	}
	return files, sum
}

// Damage says what Open could not read, in bytes, and how many damaged files are
// set aside now.
func (a *Archive) Damage() (lost int64, files int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg.Scope == Off {
		return 0, 0
	}
	aside, _ := asideFiles(filepath.Join(a.cfg.Dir, asideDir))
	return a.lost, len(aside)
}

// lostBytes returns those of the damage that are not just a head, whose length is
// given, or its copy, or both.
func lostBytes(damaged []stretch, head int64) (sum int64) {
	for _, d := range damaged {
		switch d {
		case stretch{0, head}, stretch{head, 2 * head}, stretch{0, 2 * head}:
		default:
			sum += d.to - d.from
		}
	}
	return sum
}

// cutShort reports whether a stretch at a file's end is the begin of a frame.
func cutShort(f *os.File, d stretch) bool {
	var fixed [frameHead]byte
	if d.to-d.from < frameHead {
		return true
	}
	if _, err := f.ReadAt(fixed[:], d.from); err != nil {
		return false
	}
	n := int64(binary.LittleEndian.Uint32(fixed[:]))
	return n > 0 && n <= maxRecord && n > d.to-d.from-frameHead
}

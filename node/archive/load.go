package archive

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// load finds the segments and goes on with the last one. Of those before it,
// only heads are read. If the last head is lost, where to go on follows from the
// newest one that is left and everything after it.
func (a *Archive) load() error {
	numbers, err := segmentNumbers(a.cfg.Dir)
	if err != nil {
		return err
	}
	heads := make([]*head, len(numbers))
	from := 0 // the newest segment with a head
	for i, n := range numbers {
		a.newest = n
		if heads[i] = a.readHeadOf(n); heads[i] != nil {
			from = i
		}
	}
	a.federation = a.cfg.Federation // unless a head says otherwise
	for i, n := range numbers {
		s := segment{number: n}
		if whole := i < from && heads[i] != nil && a.passOver(&s, heads[i]); !whole {
			a.loadSegment(&s, i == len(numbers)-1)
		}
		if s.size > 0 {
			a.segments = append(a.segments, s)
		}
	}
	a.orderCreated()
	return a.goOn()
}

// goOn opens the last segment for writing, or begins one. A disk that is full is
// no reason to fail: the next write tries again.
func (a *Archive) goOn() error {
	var err error
	switch {
	case a.federation != a.cfg.Federation: // its places mean nothing here
		a.federation = a.cfg.Federation
		a.place, a.saved = node.EventID{}, node.EventID{}
		clear(a.homes)
		err = a.beginSegment()
	case len(a.segments) == 0 || a.segments[len(a.segments)-1].number != a.newest ||
		a.segments[len(a.segments)-1].begin == 0:
		err = a.beginSegment()
	default:
		err = a.reopen()
	}
	if err != nil {
		a.cfg.Logger.Error().Err(err).Msg("the archive takes nothing now: free space on its disk, or see the reason")
	}
	return nil
}

// orderCreated has no segment begin after the one that follows it, where a head
// that was lost is dated by the file.
func (a *Archive) orderCreated() {
	next := a.cfg.Now()
	for i := range slices.Backward(a.segments) {
		s := &a.segments[i]
		if s.created.After(next) {
			s.created = next
		}
		next = s.created
	}
}

func segmentNumbers(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the archive's folder: %w", err)
	}
	var out []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".seg")
		if n, err := strconv.ParseUint(name, 10, 64); ok && err == nil && segmentName(n) == e.Name() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// readHeadOf returns a segment's head, or its copy; nil if neither can be read.
func (a *Archive) readHeadOf(n uint64) *head {
	f, size, err := a.openSegment(n)
	if err != nil {
		return nil
	}
	defer f.Close()
	var found *head
	_ = walkFrames(f, size, func(record []byte, _ stretch) error {
		if record[0] == kindHead {
			if h, err := readHead(record[1:]); err == nil {
				found = &h
			}
		}
		return errStop
	}, func(stretch) {})
	return found
}

func (a *Archive) openSegment(n uint64) (*os.File, int64, error) {
	f, err := os.Open(a.path(n))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// passOver takes over what an older segment's head says, and reports whether the
// head is where it belongs, so that nothing has to be mended.
func (a *Archive) passOver(s *segment, h *head) bool {
	info, err := os.Stat(a.path(s.number))
	if err != nil || !a.beginsWhole(s.number, h) {
		return false
	}
	a.useHead(h)
	s.created, s.begin, s.size = h.created, 1, info.Size()
	return true
}

// beginsWhole reports whether the first frame of a segment is its head.
func (a *Archive) beginsWhole(n uint64, h *head) bool {
	f, err := os.Open(a.path(n))
	if err != nil {
		return false
	}
	defer f.Close()
	want := appendFrame(nil, encodeHead(h))
	got := make([]byte, len(want))
	_, err = f.ReadAt(got, 0)
	return err == nil && slices.Equal(got, want)
}

// useHead sets the books to what they were when a segment began.
func (a *Archive) useHead(h *head) {
	a.last, a.federation = h.last, h.federation
	a.place, a.saved = h.place, h.place
	clear(a.homes)
	for _, r := range h.homes {
		a.homes[homeKey{r.job, r.task}] = r.n
	}
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

// content is what a segment's file holds.
type content struct {
	head    *head     // nil: neither it nor its copy can be read
	begin   int64     // after the last head
	commit  int64     // after the last batch that is whole with its place
	size    int64     // of the file
	ended   time.Time // end of its newest attempt
	damaged []stretch
	fault   error // of the disk: what lies behind the last stretch is unknown
}

// inspect reads all of a segment and changes nothing.
func inspect(f *os.File, size int64) content {
	c := content{size: size}
	open := false // attempts of a batch whose place is still to come
	c.fault = walkFrames(f, size, func(record []byte, at stretch) error {
		switch record[0] {
		case kindHead:
			h, err := readHead(record[1:])
			if err != nil {
				return err
			}
			if c.head == nil {
				c.head = &h
			}
			c.begin = at.to
		case kindAttempt:
			var t Attempt
			if err := readAttempt(record[1:], &t); err != nil {
				return err
			}
			if t.Ended.After(c.ended) {
				c.ended = t.Ended
			}
			open = true
		case kindSeen:
			open = true
		case kindPlace:
			open = false
		}
		if !open {
			c.commit = at.to
		}
		return nil
	}, func(s stretch) { c.damaged = append(c.damaged, s) })
	if c.fault != nil {
		c.damaged = append(c.damaged, stretch{c.commit, size})
	}
	return c
}

// torn reports whether the file is what a crash leaves of a last segment: whole
// until a place, then perhaps a part of a batch, whose last record is cut.
func (c *content) torn(f *os.File) bool {
	if c.head == nil || c.fault != nil || len(c.damaged) > 1 {
		return false
	}
	if len(c.damaged) == 0 {
		return true
	}
	d := c.damaged[0]
	return d.from >= c.commit && d.to == c.size && cutShort(f, d)
}

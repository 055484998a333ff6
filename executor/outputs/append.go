package outputs

import (
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Item is the output of an ended attempt that is to be kept.
type Item struct {
	ID      executor.ID
	At      time.Time // its end
	Streams [2]Stream // stdout, stderr
	Note    string    // why an output is not there; "" = all that was written is
}

// Stream is one output: Text of at most MaxInline bytes, or a file, that the store
// takes over.
type Stream struct {
	Text []byte
	Path string // absolute, on the store's file system or another one
	Size int64  // of the file
}

func (s *Stream) size() int64 {
	if s.Path != "" {
		return s.Size
	}
	return int64(len(s.Text))
}

func (it *Item) valid() error {
	if len(it.ID.Job) > maxJob {
		return fmt.Errorf("keep output of %.80s: its job's name is too long", it.ID)
	}
	for _, st := range it.Streams {
		if len(st.Text) > MaxInline || st.Size < 0 || st.Size > maxStream {
			return fmt.Errorf("keep output of %s: %d bytes of text, a file of %d", it.ID, len(st.Text), st.Size)
		}
	}
	return nil
}

// Put keeps outputs. When it returns without an error they are on the disk, as far
// as Text goes; files have moved. A repeat changes nothing, but it moves files that
// have not moved yet. One that is larger than all may be is kept as a note that says
// so: it would push out all others, and then itself.
func (s *Store) Put(items []Item) error {
	for i := range items {
		if err := items[i].valid(); err != nil {
			return err
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return ErrClosed
	}
	err := s.checkFolder()
	if err == nil {
		err = s.appendItems(items)
	}
	s.noteTrouble(err)
	s.sweep()
	return err
}

func (s *Store) appendItems(items []Item) error {
	fresh := make([]*Item, 0, len(items))
	for i := range items {
		if h := headOf(&items[i]); h.charge() > s.max {
			items[i].Note = fmt.Sprintf("its %d bytes are more than all outputs together may be, %d (task_logs.max_bytes, or half of the disk)", h.charge(), s.max)
			items[i].Streams = [2]Stream{}
		}
		if !s.Has(items[i].ID) {
			fresh = append(fresh, &items[i])
		}
	}
	for len(fresh) > 0 {
		n, err := s.appendSome(fresh)
		if err != nil {
			return fmt.Errorf("keep outputs: %w", err)
		}
		fresh = fresh[n:]
	}
	return s.takeFiles(items)
}

// appendSome appends as many items as the active segment takes, one at least.
func (s *Store) appendSome(items []*Item) (n int, err error) {
	g, err := s.activeFor(items[0])
	if err != nil {
		return 0, err
	}
	next := *g
	entries := s.entries
	var buf []byte
	for _, it := range items {
		h := headOf(it)
		if n > 0 && s.isFull(&next, &h) {
			break
		}
		entries = appendEntries(entries, it.ID, uint32(next.size), s.isNewest(it.ID))
		buf = appendFrame(buf, g.salt, it)
		next.add(&h)
		next.size += h.total()
		n++
	}
	if err = s.write(buf, g.size); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries[len(s.entries):] {
		s.index[e.key] = placeOf(g.number, e.off)
	}
	s.entries, *g = entries, next
	return n, nil
}

// activeFor returns the active segment, a new one if it does not take the item.
func (s *Store) activeFor(it *Item) (*segment, error) {
	s.checkActive()
	if s.file == nil {
		return s.newSegment()
	}
	g := s.segments[len(s.segments)-1]
	if h := headOf(it); g.count > 0 && s.isFull(g, &h) {
		s.seal()
		return s.newSegment()
	}
	return g, nil
}

// isFull reports whether an output belongs into the next segment: this one has
// enough, or is of another time.
func (s *Store) isFull(g *segment, h *head) bool {
	span := max(g.last, h.at) - min(g.first, h.at)
	return g.count >= maxEntries || g.size+h.total() > maxSegment ||
		g.charge+h.charge() > max(s.max/fractions, minCharge) || span > s.span().Milliseconds()
}

// span returns how much time of ends one segment covers.
func (s *Store) span() time.Duration { return s.cfg.Keep / fractions }

// write adds bytes to the active segment and syncs them; if that fails they are gone
// again.
func (s *Store) write(b []byte, at int64) error {
	_, err := s.file.WriteAt(b, at)
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		return nil
	}
	if terr := s.file.Truncate(at); terr != nil {
		s.seal() // nothing may stand behind what is half written
		return errors.Join(err, terr)
	}
	return err
}

// noteTrouble logs when the disk begins to refuse, and when it takes outputs again.
func (s *Store) noteTrouble(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	before := s.trouble
	s.trouble = text
	s.mu.Unlock()
	switch {
	case text != "" && before == "":
		s.cfg.Logger.Warn().Err(err).Msg("outputs of ended attempts stay in their own files for now; tried again: free space on the disk of data_dir, or mend it")
	case text == "" && before != "":
		s.cfg.Logger.Info().Msg("outputs of ended attempts are kept together again")
	}
}

package history

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/node/replica"
)

// suffix is of a segment's name, behind its number.
const suffix = ".history"

func fileName(n uint64) string { return fmt.Sprintf("%08d%s", n, suffix) }

func segmentPath(dir string, n uint64) string { return filepath.Join(dir, fileName(n)) }

// segmentNames returns the numbers of a folder's segments, ascending.
func segmentNames(dir string) (all []uint64, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), suffix)
		if n, bad := strconv.ParseUint(name, 10, 64); ok && bad == nil && f.Type().IsRegular() {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

// Open returns a Keeper that goes on with the newest segment of a folder, if that has not ended. What a crash has left
// of a last record is cut off.
func Open(cfg Config) (*Keeper, error) {
	k := &Keeper{
		cfg: cfg, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		wanted: map[uint64]map[string]bool{},
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	all, err := segmentNames(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	for _, n := range all {
		if st, cause := os.Stat(segmentPath(cfg.Dir, n)); cause == nil {
			k.bytes.Add(st.Size())
		}
		k.out.name = n
	}
	if len(all) > 0 {
		k.resume(segmentPath(cfg.Dir, k.out.name))
	}
	go k.run()
	return k, nil
}

// resume goes on with a segment. One that cannot be gone on with stays as it is, and the next checkpoint begins
// another.
func (k *Keeper) resume(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	var s tail
	if err == nil {
		s, err = readTail(f)
	}
	switch {
	case err == nil && s.held:
		k.out.held = s.torn
		k.cfg.Logger.Warn().Str("segment", path).Int64("byte", s.size).Uint64("entry", s.at.entry).
			Msg("a record within the newest segment of the kept history is damaged: what stands behind it stays there, unless the log brings it again")
	case err == nil && s.torn > 0:
		k.cfg.Logger.Warn().Str("segment", path).Int64("bytes", s.torn).Uint64("entry", s.at.entry).
			Msg("a crash has left half a record, or a damaged one, at the end of the newest segment of the kept history: it is cut off")
		err = f.Truncate(s.size)
		k.bytes.Add(-s.torn)
	}
	if err == nil && !s.ended {
		_, err = f.Seek(s.size, io.SeekStart)
	}
	if err != nil || s.ended {
		if err != nil {
			k.cfg.Logger.Warn().Err(err).Str("segment", path).Msg("the kept history cannot be gone on with: another segment begins")
		}
		if f != nil {
			_ = f.Close()
		}
		return
	}
	k.out.file, k.out.size, k.out.at = f, s.size, s.at
	k.on, k.at = true, s.at
	k.state.Store(s.begun)
	k.grown = s.size - s.begun
}

// tail is how a segment ends.
type tail struct {
	at    place
	size  int64 // up to the last whole record
	torn  int64 // bytes behind that
	begun int64 // bytes up to where the state is complete, 0 = it is not
	ended bool
	held  bool // whole records stand in torn, and an entry may be missing before them

	hole *Damage // in front of what is read now, since the last entry
}

// errBegun reports a segment whose state is not complete.
var errBegun = errors.New("its state is not complete")

// readTail goes through a segment: what the chain is at its end stands nowhere else. A loss of power leaves zeros, or
// what a disk made of them: a record that is damaged, and behind which no whole one stands, is cut off as half a record
// is. One in the middle costs nothing if it was a statement: the entries around it are in a row.
func readTail(f *os.File) (t tail, err error) {
	st, err := f.Stat()
	if err != nil {
		return t, err
	}
	r, err := NewReader(f, st.Size())
	if err != nil {
		return t, err
	}
	var head []byte
	for {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, ErrTorn), errors.Is(err, ErrDamaged):
			if t.begun == 0 {
				return t, errBegun
			}
			if t.unread(r, err) {
				return t, nil
			}
			continue
		case err != nil:
			return t, err
		case rec.Kind == KindEntry && !t.follows(&rec, r.size):
			return t, nil
		}
		switch rec.Kind {
		case KindState:
			if head == nil {
				head = rec.Contents
			}
		case KindBegun:
			t.begun, t.at.entry = rec.End, rec.Number
			if t.at.chain, err = replica.ReadChain(bytes.NewReader(head)); err != nil {
				return t, err
			}
		case KindEntry:
			t.at = place{rec.Number, t.at.chain.Next(sha256.Sum256(rec.Contents))}
		case KindEnd:
			t.ended = true
		case KindStatement:
		}
	}
}

// unread goes beyond what cannot be read; true: nothing whole stands behind it.
func (t *tail) unread(r *Reader, err error) bool {
	from := r.At()
	if !errors.Is(err, io.EOF) {
		if d := r.resync(); d.To < r.size {
			if t.hole != nil {
				d.From, d.Exact = t.hole.From, d.Exact && t.hole.Exact
			}
			t.hole = d
			return false
		}
	}
	if t.hole != nil && !t.hole.Exact {
		from, t.held = t.hole.From, true
	}
	t.size, t.torn = from, r.size-from
	return true
}

// follows reports whether an entry follows those before damage, if there is some: else the segment ends there.
func (t *tail) follows(rec *Record, size int64) bool {
	if d := t.hole; d != nil && (!d.Exact || rec.Number != t.at.entry+1) {
		t.size, t.torn, t.held = d.From, size-d.From, true
		return false
	}
	t.hole = nil
	return true
}

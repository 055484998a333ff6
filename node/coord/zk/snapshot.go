package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
)

// pointer reads which snapshot is the newest, and the version of that word.
func (l *Log) pointer(ctx context.Context) (p pointer, version int32, err error) {
	n, err := l.c.get(ctx, pathSnapshot)
	switch {
	case err != nil:
		return p, 0, err
	case !n.found:
		return p, 0, fmt.Errorf("%w: %s%s is missing", ErrDamaged, l.c.root, pathSnapshot)
	}
	return p, n.stat.Version, parse(l.c.root+pathSnapshot, n.data, &p)
}

// catchUp replaces the state by the snapshot, because the next entry was trimmed.
func (l *Log) catchUp(ctx context.Context, p pointer) error {
	chunks := &chunkReader{ctx: ctx, c: l.c, p: p}
	err := l.machine.restore(p.Entry, chunks, l.calls)
	if err == nil {
		l.log.Info().Uint64("entry", p.Entry).Int64("bytes", p.Bytes).Msg("goes on from a snapshot")
		return nil
	}
	if errors.Is(chunks.err, errGone) {
		now, _, cause := l.pointer(ctx)
		if cause != nil || now.Entry != p.Entry || now.Term != p.Term {
			return cause // a newer one took its place meanwhile
		}
	}
	if chunks.err != nil {
		return chunks.err
	}
	return fmt.Errorf("restore the snapshot %s%s: %w", l.c.root, p.chunk(0), err)
}

var errGone = fmt.Errorf("%w: it is missing", ErrDamaged)

// chunkReader reads a snapshot, and checks each chunk before it hands it on.
type chunkReader struct {
	ctx  context.Context
	c    *client
	p    pointer
	next int
	left []byte
	err  error // why it ended early
}

// Read implements io.Reader.
func (r *chunkReader) Read(b []byte) (int, error) {
	for len(r.left) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.next == len(r.p.Sums) {
			return 0, io.EOF
		}
		path := r.p.chunk(r.next)
		n, err := r.c.get(r.ctx, path)
		switch {
		case err != nil:
			r.err = err
		case !n.found:
			r.err = fmt.Errorf("read %s%s: %w", r.c.root, path, errGone)
		case crc32.Checksum(n.data, castagnoli) != r.p.Sums[r.next]:
			r.err = fmt.Errorf("read %s%s: %w: its checksum does not fit: delete nothing, restore it, or recover from a broker's copy",
				r.c.root, path, ErrDamaged)
		default:
			r.left = n.data
			r.next++
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// keepSmall writes snapshots and trims while this member leads, until ctx ends.
func (l *Log) keepSmall(ctx context.Context) {
	for {
		select {
		case <-l.grown:
		case <-ctx.Done():
			return
		}
		r := l.reign.Load()
		if r == nil || !r.orders() || !l.due(r) {
			continue
		}
		trail := l.t.trail
		if l.machine.grown.Load() >= l.t.snapshotBytes {
			trail = 0 // few and long entries: they would take too much
		}
		if err := l.compact(r, trail); err != nil && r.ctx.Err() == nil {
			l.log.Warn().Err(err).Msg("no snapshot written: it is tried again")
			select {
			case <-time.After(l.t.poll):
				coord.Signal(l.grown)
			case <-ctx.Done():
			}
		}
	}
}

// due says whether a snapshot is.
func (l *Log) due(r *reign) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := l.machine.position.Now()
	return at >= r.first+l.t.snapshotEntries+l.t.trail || l.machine.grown.Load() >= l.t.snapshotBytes
}

// compact writes a snapshot, then the pointer, then deletes what neither a new
// member nor one that is at most trail entries behind needs. If the newest
// snapshot is of now it only deletes: who wrote it may have been cut off before.
func (l *Log) compact(r *reign, trail uint64) error {
	before, version, err := l.pointer(r.ctx)
	if err != nil {
		return err
	}
	s, at, taken, err := l.machine.freeze()
	if err != nil {
		return fmt.Errorf("freeze the state: %w", err)
	}
	defer s.Release()
	now := before
	if at > before.Entry {
		now = pointer{Entry: at, Term: r.term}
		if version, err = l.replace(r, s, before, version, &now); err != nil {
			return err
		}
	}
	err = errors.Join(l.trim(r, now.Entry-min(now.Entry, max(trail, 1))), l.sweepChunks(r, version, before, now))
	if err != nil {
		return err // what failed stays due
	}
	l.machine.grown.Add(-taken)
	r.mu.Lock()
	r.bytes = l.machine.grown.Load()
	r.mu.Unlock()
	r.moved.Fire()
	return nil
}

// replace writes a snapshot and the pointer to it, and returns the pointer's
// version.
func (l *Log) replace(r *reign, s coord.Snapshot, before pointer, version int32, now *pointer) (int32, error) {
	if err := l.sweepChunks(r, version, before); err != nil {
		return 0, err
	}
	if err := l.writeChunks(r, s, now); err != nil {
		return 0, fmt.Errorf("write snapshot of entry %d: %w", now.Entry, err)
	}
	res, err := l.fenced(r, l.c.set(pathSnapshot, encode(now), version))
	if err != nil {
		return 0, l.c.name("write", pathSnapshot, err)
	}
	return res[1].Stat.Version, nil
}

// fenced sends operations that hold only while this member leads.
func (l *Log) fenced(r *reign, ops ...any) ([]zk.MultiResponse, error) {
	return l.c.writeHere(r.ctx, append([]any{l.c.check(pathLead, r.version)}, ops...)...)
}

func (l *Log) writeChunks(r *reign, s coord.Snapshot, p *pointer) error {
	w := &chunkWriter{l: l, r: r, p: p, buf: make([]byte, 0, maxPart)}
	if err := s.Write(w); err != nil {
		return err
	}
	return w.flush()
}

// chunkWriter cuts a snapshot into znodes.
type chunkWriter struct {
	l   *Log
	r   *reign
	p   *pointer
	buf []byte
}

// Write implements io.Writer.
func (w *chunkWriter) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := copy(w.buf[len(w.buf):cap(w.buf)], rest)
		w.buf, rest = w.buf[:len(w.buf)+n], rest[n:]
		if len(w.buf) == cap(w.buf) {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

// flush writes a chunk; what was written before the connection ended is not
// written again.
func (w *chunkWriter) flush() error {
	path := w.p.chunk(len(w.p.Sums))
	data := bytes.Clone(w.buf)
	for {
		_, err := w.l.fenced(w.r, w.l.c.create(path, data, 0))
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists) && w.l.holds(path, data):
			w.p.Sums = append(w.p.Sums, crc32.Checksum(data, castagnoli))
			w.p.Bytes += int64(len(data))
			w.buf = w.buf[:0]
			return nil
		case !transient(err) || w.r.ctx.Err() != nil:
			return w.l.c.name("create", path, err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-w.r.ctx.Done():
		}
	}
}

// maxDeletes is how many znodes one transaction deletes.
const maxDeletes = 128

// trim deletes the entries up to last, with their parts.
func (l *Log) trim(r *reign, last uint64) error {
	if err := l.sweep(r, pathParts, func(name string) bool {
		n, err := parseNumber(name)
		return err == nil && n <= last
	}); err != nil {
		return err
	}
	r.mu.Lock()
	first := r.first
	r.mu.Unlock()
	for n := first; n <= last; {
		end := min(last, n+maxDeletes-1)
		var paths []string
		for ; n <= end; n++ {
			paths = append(paths, logPath(n))
		}
		if err := l.delete(r, paths); err != nil {
			return err
		}
		r.mu.Lock()
		r.first = n
		r.mu.Unlock()
		r.moved.Fire()
	}
	return nil
}

// delete deletes znodes, those that are already gone included, as long as all
// checks hold.
func (l *Log) delete(r *reign, paths []string, checks ...any) error {
	ops := slices.Clone(checks)
	for _, p := range paths {
		ops = append(ops, l.c.remove(p))
	}
	_, err := l.fenced(r, ops...)
	if errors.Is(err, zk.ErrNoNode) && len(paths) > 1 {
		// An attempt whose answer was lost, or somebody's hand: one by one.
		for _, p := range paths {
			if err = l.delete(r, []string{p}, checks...); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return l.c.name("delete", paths[0], err)
	}
	return nil
}

// sweep deletes the children of a znode that gone picks, as long as all checks
// hold.
func (l *Log) sweep(r *reign, path string, gone func(name string) bool, checks ...any) error {
	all, err := l.c.children(r.ctx, path)
	if err != nil {
		return err
	}
	var paths []string
	for _, name := range all.children {
		if gone(name) {
			paths = append(paths, path+"/"+name)
		}
	}
	for len(paths) > 0 {
		n := min(len(paths), maxDeletes)
		if err := l.delete(r, paths[:n], checks...); err != nil {
			return err
		}
		paths = paths[n:]
	}
	return nil
}

// sweepChunks deletes the chunks of all snapshots but some, as long as the pointer
// is of a version: one of before would make the present snapshot's chunks
// nobody's.
func (l *Log) sweepChunks(r *reign, version int32, but ...pointer) error {
	keep := map[string]bool{}
	for _, p := range but {
		for i := range p.Sums {
			keep[p.chunk(i)] = true
		}
	}
	return l.sweep(r, pathSnapshots, func(name string) bool { return !keep[pathSnapshots+"/"+name] }, l.c.check(pathSnapshot, version))
}

// sweepParts deletes the parts of entries that were never written: their lead lost
// the lead in between.
func (l *Log) sweepParts(r *reign, next uint64) error {
	return l.sweep(r, pathParts, func(name string) bool {
		n, err := parseNumber(name)
		return err == nil && n >= next
	})
}

package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// pointer reads which snapshot is the newest, and the version of that word.
func (c *client) pointer(ctx context.Context) (p tree.Pointer, version int32, err error) {
	n, err := c.get(ctx, tree.SnapshotPath)
	switch {
	case err != nil:
		return p, 0, err
	case !n.found:
		return p, 0, fmt.Errorf("read %s%s: %w", c.root, tree.SnapshotPath, errGone)
	}
	return p, n.stat.Version, tree.Parse(c.root+tree.SnapshotPath, n.data, &p)
}

// catchUp replaces the state by the snapshot, because the next entry was trimmed. Of one that is not as it was signed
// nothing is taken: the leader writes another one.
func (l *Log) catchUp(ctx context.Context, p tree.Pointer) error {
	if !l.goesBy(p) {
		l.hole.open(l, fmt.Errorf("read %s%s: %w: %s has written it, who does not lead", l.c.root, tree.SnapshotPath,
			tree.ErrDamaged, command.Clip(p.By)))
		return l.awaitMending(ctx)
	}
	chunks := &chunkReader{ctx: ctx, c: l.c, p: p}
	err := l.machine.restore(p.Entry, chunks, l.Calls)
	if err == nil {
		l.hole.close()
		l.log.Info().Uint64("entry", p.Entry).Int64("bytes", p.Bytes).Msg("continuing from a snapshot")
		return nil
	}
	if errors.Is(chunks.err, errGone) {
		now, _, cause := l.c.pointer(ctx)
		if cause != nil || now.Entry != p.Entry || now.Term != p.Term {
			return cause // a newer one took its place meanwhile
		}
	}
	if chunks.err == nil {
		err = fmt.Errorf("restore the snapshot %s%s: %w: %w", l.c.root, p.Chunk(0), tree.ErrDamaged, err)
	} else {
		err = chunks.err
	}
	if l.nonce == "" || !errors.Is(err, tree.ErrDamaged) {
		return err
	}
	l.hole.open(l, err)
	return l.awaitMending(ctx)
}

// goesBy reports whether this member gives its own state up for a snapshot: for one of the leader alone, as on Raft.
// Who leads itself, and is behind the log, has that of an earlier leader, unless another voter could lead.
func (l *Log) goesBy(p tree.Pointer) bool {
	lead := l.group.leads().Site
	switch {
	case l.who == nil, l.nonce == "", l.machine.position.Now() == 0, lead != "" && lead == p.By:
		return true
	case lead == l.cfg.Site:
		return !l.group.otherVoterFit(l.cfg.Site)
	}
	return false
}

var errGone = fmt.Errorf("%w: it is missing", tree.ErrDamaged)

// chunkReader reads a snapshot, and checks each chunk before it hands it on.
type chunkReader struct {
	ctx  context.Context
	c    *client
	p    tree.Pointer
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
		path := r.p.Chunk(r.next)
		n, err := r.c.get(r.ctx, path)
		switch {
		case err != nil:
			r.err = err
		case !n.found:
			r.err = fmt.Errorf("read %s%s: %w", r.c.root, path, errGone)
		case !bytes.Equal(tree.SumOf(n.data), r.p.Sums[r.next]):
			r.err = fmt.Errorf("read %s%s: %w: its checksum is not the one that %s has signed", r.c.root, path, tree.ErrDamaged, command.Clip(r.p.By))
		default:
			r.left = n.data
			r.next++
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// compactWhileLeading writes snapshots and trims while this member leads, until ctx ends.
func (l *Log) compactWhileLeading(ctx context.Context) {
	for {
		select {
		case <-l.grown:
		case <-ctx.Done():
			return
		}
		r := l.leaderTerm.Load()
		if r == nil || !r.isOpen() || !l.snapshotDue(r) {
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

// snapshotDue reports whether a snapshot is.
func (l *Log) snapshotDue(r *leaderTerm) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := l.machine.position.Now()
	return l.mending.due.Load() || at >= r.first+l.t.snapshotEntries+l.t.trail ||
		l.machine.grown.Load() >= l.t.snapshotBytes
}

// compact writes a snapshot, then the pointer, then deletes what neither a new
// member nor one that is at most trail entries behind needs. If the newest
// snapshot is of now it only deletes: who wrote it may have been cut off before.
func (l *Log) compact(r *leaderTerm, trail uint64) error {
	s, at, taken, err := l.machine.freeze()
	if err != nil {
		return fmt.Errorf("freeze the state: %w", err)
	}
	defer s.Release()
	before, version, err := l.replaceable(r, at)
	if err != nil {
		return err
	}
	now := before
	if at > before.Entry {
		now = tree.Pointer{Entry: at, Term: r.term}
		if version, err = l.replaceSnapshot(r, s, before, version, &now); err != nil {
			return err
		}
		l.mending.due.Store(false)
	}
	err = errors.Join(r.trim(now.Entry-min(now.Entry, max(trail, 1))), r.sweepChunks(version, before, now))
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

// replaceable returns the newest snapshot, and the version of that word. One that no elector has signed, or that is of
// an entry that this leader has not applied, is none.
func (l *Log) replaceable(r *leaderTerm, at uint64) (p tree.Pointer, version int32, err error) {
	p, version, err = l.c.pointer(r.ctx)
	switch {
	case errors.Is(err, errGone):
		return p, version, errors.Join(err, l.c.ensure(r.ctx, tree.SnapshotPath, tree.Encode(tree.Pointer{})))
	case errors.Is(err, tree.ErrDamaged), err == nil && (!l.isOwnSnapshot(p) || p.Entry > at):
		return tree.Pointer{}, version, nil
	}
	return p, version, err
}

// replaceSnapshot writes a snapshot and the pointer to it, and returns the pointer's
// version.
func (l *Log) replaceSnapshot(r *leaderTerm, s coord.Snapshot, before tree.Pointer, version int32,
	now *tree.Pointer,
) (int32, error) {
	if err := r.sweepChunks(version, before); err != nil {
		return 0, err
	}
	if err := r.writeChunks(s, now); err != nil {
		return 0, fmt.Errorf("write snapshot of entry %d: %w", now.Entry, err)
	}
	l.signSnapshot(now)
	res, err := r.writeFenced(r.c.set(tree.SnapshotPath, tree.Encode(now), version))
	if err != nil {
		return 0, r.c.wrapError("write", tree.SnapshotPath, err)
	}
	return res[1].Stat.Version, nil
}

// writeFenced sends operations that hold only while this member leads.
func (r *leaderTerm) writeFenced(ops ...any) ([]zk.MultiResponse, error) {
	return r.c.writeHere(r.ctx, append([]any{r.c.check(tree.LeadPath, r.version)}, ops...)...)
}

func (r *leaderTerm) writeChunks(s coord.Snapshot, p *tree.Pointer) error {
	w := &chunkWriter{r: r, p: p, buf: make([]byte, 0, tree.MaxPart)}
	if err := s.Write(w); err != nil {
		return err
	}
	return w.flush()
}

// chunkWriter cuts a snapshot into znodes.
type chunkWriter struct {
	r   *leaderTerm
	p   *tree.Pointer
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
	path := w.p.Chunk(len(w.p.Sums))
	data := bytes.Clone(w.buf)
	for {
		_, err := w.r.writeFenced(w.r.c.create(path, data, 0))
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists) && w.r.c.hasData(w.r.ctx, path, data):
			w.p.Sums = append(w.p.Sums, tree.SumOf(data))
			w.p.Bytes += int64(len(data))
			w.buf = w.buf[:0]
			return nil
		case !transient(err) || w.r.ctx.Err() != nil:
			return w.r.c.wrapError("create", path, err)
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
func (r *leaderTerm) trim(last uint64) error {
	if err := r.sweep(tree.PartsPath, func(name string) bool {
		n, err := tree.ParseNumber(name)
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
			paths = append(paths, tree.EntryPath(n))
		}
		if err := r.delete(paths); err != nil {
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
func (r *leaderTerm) delete(paths []string, checks ...any) error {
	ops := slices.Clone(checks)
	for _, p := range paths {
		ops = append(ops, r.c.remove(p))
	}
	_, err := r.writeFenced(ops...)
	if errors.Is(err, zk.ErrNoNode) && len(paths) > 1 {
		// An attempt whose answer was lost, or somebody's hand: one by one.
		for _, p := range paths {
			if err = r.delete([]string{p}, checks...); err != nil {
				return err
			}
		}
		return nil
	}
	if errors.Is(err, zk.ErrNotEmpty) {
		for _, p := range paths {
			if err = r.c.purgeBelow(r.ctx, p); err != nil {
				return err
			}
		}
		return r.delete(paths, checks...)
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return r.c.wrapError("delete", paths[0], err)
	}
	return nil
}

// sweep deletes the children of a znode that gone picks, as long as all checks
// hold.
func (r *leaderTerm) sweep(path string, gone func(name string) bool, checks ...any) error {
	all, err := r.c.children(r.ctx, path)
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
		if err := r.delete(paths[:n], checks...); err != nil {
			return err
		}
		paths = paths[n:]
	}
	return nil
}

// sweepChunks deletes the chunks of all snapshots but some, as long as the pointer
// is of a version: one of before would make the present snapshot's chunks
// nobody's.
func (r *leaderTerm) sweepChunks(version int32, but ...tree.Pointer) error {
	keep := map[string]bool{}
	for _, p := range but {
		for i := range p.Sums {
			keep[p.Chunk(i)] = true
		}
	}
	return r.sweep(tree.SnapshotsPath, func(name string) bool { return !keep[tree.SnapshotsPath+"/"+name] },
		r.c.check(tree.SnapshotPath, version))
}

// sweepParts deletes the parts of entries that were never written: their leader lost
// the leader in between.
func (r *leaderTerm) sweepParts(next uint64) error {
	return r.sweep(tree.PartsPath, func(name string) bool {
		n, err := tree.ParseNumber(name)
		return err == nil && n >= next
	})
}

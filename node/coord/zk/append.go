package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// flight is one entry on its way into the log.
type flight struct {
	n     uint64
	data  []byte // of the znode
	parts [][]byte
	batch tree.Entry
	prev  *flight // the entry before, if it was sent in the same term; nil once this one is settled
	again bool    // it was sent once more after the entry before

	done    chan struct{} // closed when outcome is set
	outcome relay.Outcome
}

// Append implements relay.Backend. Several entries are in flight at a time; that
// each checks the one before keeps them in order, whatever the connection does.
func (b backend) Append(term uint64, data, header []byte) (wait func() (relay.Outcome, uint64)) {
	r := b.leaderTerm.Load()
	if r == nil || r.term != term || !b.hasRoom(r) {
		return func() (relay.Outcome, uint64) { return relay.Refused, 0 }
	}
	now := time.UnixMilli(time.Now().UnixMilli())
	f := &flight{done: make(chan struct{}), batch: tree.Entry{At: now, Header: header, Batch: data}}
	r.assignNumber(f, b.signEntry)
	begun := make(chan struct{})
	b.WG.Go(func() {
		close(begun)
		f.outcome = b.writeUntilSettled(r, f)
		f.prev = nil
		if b.cfg.Hooks.Store != nil && f.outcome == relay.Ordered {
			b.cfg.Hooks.Store(time.Since(now), 1)
		}
		close(f.done)
		r.moved.Fire()
	})
	<-begun // so that entries mostly reach the connection in their order
	return func() (relay.Outcome, uint64) {
		<-f.done
		return f.outcome, f.n
	}
}

// assignNumber gives the entry its number, and has it signed.
func (r *leaderTerm) assignNumber(f *flight, sign func(n uint64, e *tree.Entry)) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	n := r.next
	r.mu.Unlock()
	sign(n, &f.batch)
	f.data, f.parts = f.batch.Encode()
	r.mu.Lock()
	f.n, f.prev = n, r.last
	r.next++
	r.last = f
	r.flying[f.n] = f
	r.bytes += int64(len(f.batch.Batch))
	r.mu.Unlock()
	r.moved.Fire()
}

// hasRoom waits until the log may grow: the tree is bounded whatever the load. It
// returns false if the term ends first.
func (b backend) hasRoom(r *leaderTerm) bool {
	for {
		moved := r.moved.Wait()
		r.mu.Lock()
		room := r.next-r.first < b.t.maxEntries && r.bytes < b.t.maxBytes
		r.mu.Unlock()
		switch {
		case r.ctx.Err() != nil:
			return false
		case room:
			return true
		}
		select {
		case <-moved:
		case <-r.ctx.Done():
			return false
		}
	}
}

// writeUntilSettled writes the entry until it is known what became of it. The bytes and the
// number stay the same, so whatever is repeated is written once. Once another leader
// has taken /lead it cannot be written any more, so what is not there then never
// will be.
func (l *Log) writeUntilSettled(r *leaderTerm, f *flight) relay.Outcome {
	for {
		changed := l.c.changed.Wait()
		session := l.c.zk.SessionID()
		failed, err := r.write(l.Ctx, f)
		switch {
		case err == nil:
			return relay.Ordered
		case transient(err):
			select {
			case <-changed:
			case <-time.After(100 * time.Millisecond):
			case <-l.Ctx.Done():
				return relay.Unknown
			}
			continue
		case errors.Is(err, zk.ErrBadVersion) && failed == tree.LeadPath:
			coord.Signal(l.kick)
			l.stepDownFrom(r, "another member leads")
			return l.c.findEntry(l.Ctx, f, session)
		case errors.Is(err, zk.ErrNodeExists) && failed == tree.LogPath:
			if o := l.c.findEntry(l.Ctx, f, session); o != relay.Refused {
				return o
			}
			if o, over := l.replaceForeign(r, f); over {
				return o
			}
			continue
		case errors.Is(err, zk.ErrNodeExists) && failed == tree.PartsPath:
			if err = l.replaceParts(r, f); err == nil || transient(err) {
				continue
			}
		case (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion)) && failed == tree.EntryPath(f.n-1):
			if f.prev != nil {
				// It overtook the entry before, or that was changed.
				<-f.prev.done
				if f.prev.outcome != relay.Ordered {
					return f.prev.outcome
				}
				if !f.again {
					f.again = true
					continue
				}
			}
			if err = l.restoreBefore(r, f); err == nil || transient(err) {
				continue
			}
		}
		if l.Ctx.Err() == nil {
			l.fail(l.c.wrapError("append", tree.EntryPath(f.n), l.c.explainConflict(failed, err)))
		}
		return relay.Unknown
	}
}

// explainConflict says which znode is not as it must be: what failed is the path of the
// operation that the ensemble refused.
func (c *client) explainConflict(failed string, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("%w: %s%s is missing: somebody else deletes in the tree", tree.ErrDamaged, c.root, failed)
	case errors.Is(err, zk.ErrBadVersion):
		return fmt.Errorf("%w: %s%s was changed after it was written: somebody else writes into the tree", tree.ErrDamaged, c.root, failed)
	}
	return err
}

// stepDownFrom ends a term, if it is still the one.
func (l *Log) stepDownFrom(r *leaderTerm, why string) {
	if l.leaderTerm.CompareAndSwap(r, nil) {
		l.log.Info().Uint64("term", r.term).Str("because", why).Msg("stepping down")
		r.end()
		r.moved.Fire()
		l.termChanged.Fire()
		l.Calls.LeadChanged()
	}
}

// write sends the entry once, its parts before it. failed is the znode that was
// not as an operation needs it, "" if that is not known.
func (r *leaderTerm) write(ctx context.Context, f *flight) (failed string, err error) {
	for i, p := range f.parts {
		path := tree.PartPath(f.n, i)
		res, cause := r.c.writeHere(ctx, r.c.check(tree.LeadPath, r.version), r.c.create(path, p, 0))
		if cause != nil && !(errors.Is(cause, zk.ErrNodeExists) && r.c.hasData(ctx, path, p)) {
			return pathAt(failedAt(res, cause), tree.LeadPath, tree.PartsPath), cause
		}
	}
	before := tree.EntryPath(f.n - 1)
	res, err := r.c.writeHere(ctx, r.c.check(tree.LeadPath, r.version), r.c.check(before, 0),
		r.c.create(tree.EntryPath(f.n), f.data, 0))
	return pathAt(failedAt(res, err), tree.LeadPath, before, tree.LogPath), err
}

// pathAt returns the path that the i-th operation is about, or "".
func pathAt(i int, paths ...string) string {
	if i < 0 || i >= len(paths) {
		return ""
	}
	return paths[i]
}

// hasData reports whether a znode has these bytes.
func (c *client) hasData(ctx context.Context, path string, data []byte) bool {
	n, err := c.get(ctx, path)
	return err == nil && n.found && bytes.Equal(n.data, data)
}

// findEntry looks an entry up that cannot be written any more. What is missing counts
// only in the session in which that was learnt: a new one may begin at a server
// that lags behind, where the ensemble has sessions that are no transactions
// (localSessionsEnabled).
func (c *client) findEntry(ctx context.Context, f *flight, session int64) relay.Outcome {
	n, err := c.get(ctx, tree.EntryPath(f.n))
	switch {
	case err != nil:
		return relay.Unknown
	case n.found && bytes.Equal(n.data, f.data):
		return relay.Ordered
	case n.found:
		return relay.Refused
	}
	// Not there: never written, or written, executed and trimmed by now.
	p, _, err := c.pointer(ctx)
	if err != nil || p.Entry >= f.n || c.zk.SessionID() != session {
		return relay.Unknown
	}
	return relay.Refused
}

// awaitEntry waits for entry n of this term; an error ends the term's part.
func (r *leaderTerm) awaitEntry(ctx context.Context, n uint64) (*flight, error) {
	for {
		moved := r.moved.Wait()
		r.mu.Lock()
		f := r.flying[n]
		r.mu.Unlock()
		var done chan struct{} // never, for an entry that was not sent
		if f != nil {
			done = f.done
		}
		select {
		case <-done:
			if f.outcome == relay.Ordered {
				return f, nil
			}
			return nil, errDeposed
		case <-moved:
		case <-r.ctx.Done():
			return nil, errDeposed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errDeposed = errors.New("the term is over")

// forgetEntry forgets an entry of this term.
func (r *leaderTerm) forgetEntry(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flying, n)
}

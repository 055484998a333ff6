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
)

// flight is one entry on its way into the log.
type flight struct {
	n     uint64
	data  []byte // of the znode
	parts [][]byte
	batch entry
	prev  *flight // the entry before, if it was sent in the same reign; nil once this one is settled
	again bool    // it was sent once more after the entry before

	done    chan struct{} // closed when outcome is set
	outcome relay.Outcome
}

// Append implements relay.Backend. Several entries are in flight at a time; that
// each checks the one before keeps them in order, whatever the connection does.
func (b backend) Append(term uint64, data, header []byte) (wait func() (relay.Outcome, uint64)) {
	r := b.reign.Load()
	if r == nil || r.term != term || !b.hasRoom(r) {
		return func() (relay.Outcome, uint64) { return relay.Refused, 0 }
	}
	now := time.UnixMilli(time.Now().UnixMilli())
	f := &flight{done: make(chan struct{}), batch: entry{at: now, header: header, batch: data}}
	f.data, f.parts = encodeEntry(now, header, data)
	r.launch(f)
	begun := make(chan struct{})
	b.wg.Go(func() {
		close(begun)
		f.outcome = b.settle(r, f)
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

// launch gives the entry its number.
func (r *reign) launch(f *flight) {
	r.mu.Lock()
	f.n, f.prev = r.next, r.last
	r.next++
	r.last = f
	r.flying[f.n] = f
	r.bytes += int64(len(f.batch.batch))
	r.mu.Unlock()
	r.moved.Fire()
}

// hasRoom waits until the log may grow: the tree is bounded whatever the load. It
// returns false if the reign ends first.
func (b backend) hasRoom(r *reign) bool {
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

// settle writes the entry until it is known what became of it. The bytes and the
// number stay the same, so whatever is repeated is written once. Once another lead
// has taken /lead it cannot be written any more, so what is not there then never
// will be.
func (l *Log) settle(r *reign, f *flight) relay.Outcome {
	for {
		changed := l.c.changed.Wait()
		session := l.c.zk.SessionID()
		failed, err := l.write(r, f)
		switch {
		case err == nil:
			return relay.Ordered
		case transient(err):
			select {
			case <-changed:
			case <-time.After(100 * time.Millisecond):
			case <-l.ctx.Done():
				return relay.Unknown
			}
			continue
		case errors.Is(err, zk.ErrBadVersion) && failed == pathLead:
			coord.Signal(l.kick)
			l.lose(r, "another member leads")
			return l.find(f, session)
		case errors.Is(err, zk.ErrNodeExists):
			if o := l.find(f, session); o != relay.Refused {
				return o
			}
			l.fail(fmt.Errorf("append: %w: %s%s is there, and this lead did not write it: somebody else writes into the tree",
				ErrDamaged, l.c.root, logPath(f.n)))
			return relay.Unknown
		case errors.Is(err, zk.ErrNoNode) && failed == logPath(f.n-1) && f.prev != nil:
			// It overtook the entry before.
			<-f.prev.done
			if f.prev.outcome != relay.Ordered {
				return f.prev.outcome
			}
			if !f.again {
				f.again = true
				continue
			}
		}
		if l.ctx.Err() == nil {
			l.fail(l.c.name("append", logPath(f.n), l.explain(failed, err)))
		}
		return relay.Unknown
	}
}

// explain says which znode is not as it must be: what failed is the path of the
// operation that the ensemble refused.
func (l *Log) explain(failed string, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("%w: %s%s is missing: somebody else deletes in the tree", ErrDamaged, l.c.root, failed)
	case errors.Is(err, zk.ErrBadVersion):
		return fmt.Errorf("%w: %s%s was changed after it was written: somebody else writes into the tree", ErrDamaged, l.c.root, failed)
	}
	return err
}

// lose ends a reign, if it is still the one.
func (l *Log) lose(r *reign, why string) {
	if l.reign.CompareAndSwap(r, nil) {
		l.log.Info().Uint64("term", r.term).Str("because", why).Msg("lays the lead down")
		r.end()
		r.moved.Fire()
		l.reignNews.Fire()
		l.calls.LeadChanged()
	}
}

// write sends the entry once, its parts before it. failed is the znode that was
// not as an operation needs it, "" if that is not known.
func (l *Log) write(r *reign, f *flight) (failed string, err error) {
	for i, p := range f.parts {
		path := partPath(f.n, i)
		res, cause := l.c.writeHere(l.ctx, l.c.check(pathLead, r.version), l.c.create(path, p, 0))
		if cause != nil && !(errors.Is(cause, zk.ErrNodeExists) && l.holds(path, p)) {
			return pick(failedAt(res, cause), pathLead, pathParts), cause
		}
	}
	before := logPath(f.n - 1)
	res, err := l.c.writeHere(l.ctx, l.c.check(pathLead, r.version), l.c.check(before, 0), l.c.create(logPath(f.n), f.data, 0))
	return pick(failedAt(res, err), pathLead, before, pathLog), err
}

// pick returns the path that the i-th operation is about, or "".
func pick(i int, paths ...string) string {
	if i < 0 || i >= len(paths) {
		return ""
	}
	return paths[i]
}

// holds says whether a znode has these bytes.
func (l *Log) holds(path string, data []byte) bool {
	n, err := l.c.get(l.ctx, path)
	return err == nil && n.found && bytes.Equal(n.data, data)
}

// find looks an entry up that cannot be written any more. What is missing counts
// only in the session in which that was learnt: a new one may begin at a server
// that lags behind, where the ensemble has sessions that are no transactions
// (localSessionsEnabled).
func (l *Log) find(f *flight, session int64) relay.Outcome {
	n, err := l.c.get(l.ctx, logPath(f.n))
	switch {
	case err != nil:
		return relay.Unknown
	case n.found && bytes.Equal(n.data, f.data):
		return relay.Ordered
	case n.found:
		return relay.Refused
	}
	// Not there: never written, or written, executed and trimmed by now.
	p, _, err := l.pointer(l.ctx)
	if err != nil || p.Entry >= f.n || l.c.zk.SessionID() != session {
		return relay.Unknown
	}
	return relay.Refused
}

// own waits for entry n of this reign; an error ends the reign's part.
func (r *reign) own(ctx context.Context, n uint64) (*flight, error) {
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

var errDeposed = errors.New("the reign is over")

// applied forgets an entry of this reign.
func (r *reign) applied(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flying, n)
}

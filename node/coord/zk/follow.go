package zk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// maxAhead is how many entries a reader asks for at once, and aheadBytes what
// they may take in memory, in bytes.
const (
	maxAhead   = 64
	aheadBytes = 8 << 20
)

// reader brings entries to the machine in order. One goroutine uses it.
type reader struct {
	l     *Log
	w     *watches
	ahead int // how many entries to ask for at once
	// waited: a watch has fired since the last entry was read. tail: that was so, and
	// one entry was there. The next one is probably yet to come, and not trimmed, so
	// nothing is asked but its watch: each request counts, since all members ask
	// while the leader appends.
	tail, waited bool
	// doubt: the feed was silent for long, so the tree is asked once.
	doubt bool
	// junk is the znode (its zxid) under the next number that was read and does not count; 0 = none.
	junk int64
}

// followLog applies entries until ctx ends: its own from memory while this member
// leads, else from the ensemble.
func (l *Log) followLog(ctx context.Context) {
	rd := &reader{l: l, w: newWatches(), ahead: 1}
	for ctx.Err() == nil {
		if err := rd.step(ctx); err != nil && ctx.Err() == nil && !transient(err) {
			l.fail(err)
			return
		}
	}
}

// step applies what is there, or waits for it.
func (rd *reader) step(ctx context.Context) error {
	l := rd.l
	n := l.machine.position.Now() + 1
	r := l.leaderTerm.Load()
	if r == nil || !r.isOpen() {
		return rd.read(ctx, n)
	}
	f, err := r.awaitEntry(ctx, n)
	if errors.Is(err, errDeposed) {
		return nil
	}
	if err != nil {
		return err
	}
	r.sendToFeeds(f)
	if err = l.apply(n, &f.batch); isUncounted(err) {
		l.stepDownFrom(r, err.Error()) // the electors have decided so, in an entry before
		err = nil
	}
	r.forgetEntry(n)
	return err
}

func (l *Log) apply(n uint64, e *tree.Entry) error {
	err := l.machine.apply(n, e, l.Calls)
	switch {
	case isUncounted(err):
		return fmt.Errorf("%s%s: %w", l.c.root, tree.EntryPath(n), err)
	case err != nil:
		return fmt.Errorf("apply %s%s: %w; this broker stops rather than skip it: run the version that wrote it, or restore the tree",
			l.c.root, tree.EntryPath(n), err)
	}
	l.hole.close()
	coord.Signal(l.grown)
	return nil
}

// read applies the entries from n on that the leader has handed out or that are in
// the tree, or waits for n.
func (rd *reader) read(ctx context.Context, n uint64) error {
	e, coming := rd.l.receiver.takeEntry(n)
	doubt := rd.doubt
	rd.doubt = false
	switch {
	case e != nil:
		rd.tail, rd.waited, rd.junk = false, false, 0
		err := rd.l.apply(n, e)
		if isUncounted(err) {
			rd.l.receiver.disconnect() // it says what is not so
			err = nil
		}
		return err
	case coming && !doubt && rd.l.leaderTerm.Load() == nil:
		return rd.listen(ctx)
	}
	if rd.tail {
		return rd.await(ctx, n)
	}
	applied, bytes, err := rd.readAhead(ctx, n)
	if coming && applied > 0 {
		rd.l.receiver.disconnect() // it hangs, or is slower than the ensemble
	}
	if err != nil || applied > 0 {
		rd.tail = rd.waited && err == nil && applied == 1
		rd.waited = false
		if !rd.tail {
			rd.adapt(applied, bytes)
		}
		return err
	}
	rd.ahead = 1
	return rd.await(ctx, n)
}

// listen waits for the leader to hand the next entry out. It may hang, so after a while
// the tree is asked: after twice the time in which an idle entry comes, or a look would
// now and then find an entry that is just being handed out, and end a good feed.
func (rd *reader) listen(ctx context.Context) error {
	l := rd.l
	news := l.termChanged.Wait()
	look := time.NewTimer(2 * l.t.poll)
	defer look.Stop()
	select {
	case <-l.receiver.news:
	case <-news:
	case <-look.C:
		rd.doubt, rd.ahead = l.c.up.Load(), 1
	case <-ctx.Done():
	}
	return nil
}

// advance applies some of what is there, without waiting; caught says that this
// was all.
func (rd *reader) advance(ctx context.Context) (caught bool, err error) {
	n := rd.l.machine.position.Now() + 1
	applied, bytes, err := rd.readAhead(ctx, n)
	if err != nil || applied > 0 {
		rd.adapt(applied, bytes)
		return false, err
	}
	p, err := rd.l.pointer(ctx)
	if err == nil && p.Entry >= n {
		return false, rd.l.catchUp(ctx, p)
	}
	return err == nil, err
}

// adapt asks for more the next time if all was there.
func (rd *reader) adapt(applied, bytes int) {
	if applied < rd.ahead {
		rd.ahead = 1
		return
	}
	rd.ahead = min(2*rd.ahead, maxAhead)
	if applied > 0 && bytes/applied > 0 {
		rd.ahead = max(1, min(rd.ahead, aheadBytes/(bytes/applied)))
	}
}

// readAhead asks for some entries at once and applies those that are there.
func (rd *reader) readAhead(ctx context.Context, n uint64) (applied, bytes int, err error) {
	l := rd.l
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		n   node
		err error
	}
	answers := make([]chan answer, rd.ahead)
	for i := range answers {
		answers[i] = make(chan answer, 1)
		l.c.wg.Go(func() {
			got, err := l.c.get(ctx, tree.EntryPath(n+uint64(i)))
			answers[i] <- answer{got, err}
		})
	}
	for i, ch := range answers {
		a := <-ch
		if a.err != nil || !a.n.found {
			return applied, bytes, a.err
		}
		// Asked after the reading: the connection may have changed before it.
		if err := l.sameTree(ctx); err != nil {
			return applied, bytes, err
		}
		e, err := l.c.readEntry(ctx, n+uint64(i), a.n.data)
		if errors.Is(err, errGone) {
			// Trimmed meanwhile? An entry's parts go before it.
			if p, cause := l.pointer(ctx); cause == nil && p.Entry >= n+uint64(i) {
				return applied, bytes, l.catchUp(ctx, p)
			}
		}
		if err == nil {
			err = l.apply(n+uint64(i), &e)
		}
		if isUncounted(err) || errors.Is(err, errGone) {
			rd.junk = a.n.stat.Mzxid
			l.hole.tell(l, err)
			return applied, bytes, nil
		}
		if err != nil {
			return applied, bytes, err
		}
		rd.junk = 0
		applied++
		bytes += len(a.n.data)
	}
	return applied, bytes, nil
}

// readEntry reads an entry with its parts.
func (c *client) readEntry(ctx context.Context, n uint64, data []byte) (tree.Entry, error) {
	e, err := tree.DecodeEntry(data)
	var parts [][]byte
	for i := 0; i < e.Parts && err == nil; i++ {
		var p node
		if p, err = c.get(ctx, tree.PartPath(n, i)); err != nil {
			return e, err
		}
		if !p.found {
			return e, fmt.Errorf("read %s%s: %w, and entry %d needs it", c.root, tree.PartPath(n, i), errGone, n)
		}
		parts = append(parts, p.data)
		e.Batch = append(e.Batch, p.data...)
	}
	if err == nil && e.Parts > 0 {
		err = e.Check(data, parts)
	}
	if err != nil {
		err = fmt.Errorf("read %s%s: %w: %w", c.root, tree.EntryPath(n), tree.ErrDamaged, err)
	}
	return e, err
}

// await waits until entry n is there. First it looks whether it was trimmed: only
// the watch that is set before tells that from an entry that is yet to come. At the
// tail it looks after that watch has been silent for long.
func (rd *reader) await(ctx context.Context, n uint64) error {
	l := rd.l
	changed := l.c.changed.Wait()
	news := l.termChanged.Wait()
	r := l.leaderTerm.Load()
	tail := rd.tail && r == nil
	rd.tail = false
	is, err := rd.w.expect(ctx, l.c, tree.EntryPath(n))
	if err != nil || is.found && is.stat.Mzxid != rd.junk {
		return err
	}
	var p tree.Pointer
	if !tail {
		p, err = l.pointer(ctx)
	}
	if err == nil {
		err = l.sameTree(ctx)
	}
	switch {
	case err != nil:
		return err
	case p.Entry >= n:
		return l.catchUp(ctx, p)
	case r != nil && !r.isOpen():
		// The fence was set before this read: nobody appends below it any more.
		return l.openTerm(ctx, r, n)
	}
	look := time.NewTimer(l.t.poll)
	defer look.Stop()
	select {
	case <-rd.w.fired:
		rd.waited = true
	case <-l.receiver.news:
	case <-changed:
	case <-news:
	case <-ctx.Done():
	case <-look.C:
		if !tail { // else all of it is asked first
			return l.lookForHole(ctx, n, false)
		}
	}
	return nil
}

// becomeCurrent makes one current read after each change of leader: then this
// member has applied what the leader had committed.
func (l *Log) becomeCurrent(ctx context.Context) {
	for ctx.Err() == nil {
		changed := l.Calls.NextLead()
		if to, self := (backend{l}).Lead(); !to.None() || self {
			if _, err := l.Sync(ctx); err == nil {
				l.group.catch()
				l.SignalChanged()
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// What others write where the leader is about to, or change behind it, the leader puts right: it knows what it has
// written, and what it has applied. Each time that costs whoever does it a request as well.

// replaceForeign takes what somebody else has put under the number of an entry out of its way. If that is an entry that
// counts, another member leads: then over says so.
func (l *Log) replaceForeign(r *leaderTerm, f *flight) (o relay.Outcome, over bool) {
	if err := l.awaitBefore(r, f.n); err != nil {
		return relay.Unknown, true
	}
	n, err := l.c.get(r.ctx, tree.EntryPath(f.n))
	switch {
	case err != nil:
		return relay.Unknown, r.ctx.Err() != nil
	case !n.found || bytes.Equal(n.data, f.data):
		return relay.Unknown, false // it is tried again
	case l.isNext(r.ctx, f.n, n.data):
		coord.Signal(l.kick)
		l.stepDownFrom(r, "another member orders entries")
		return relay.Refused, true
	}
	path := l.c.root + tree.EntryPath(f.n)
	l.hole.tell(l, fmt.Errorf("%w: %s is there, and no leader has signed it for its place", tree.ErrDamaged, path))
	_, err = r.writeFenced(&zk.DeleteRequest{Path: path, Version: n.stat.Version})
	if errors.Is(err, zk.ErrNotEmpty) {
		_ = l.c.purgeBelow(r.ctx, tree.EntryPath(f.n))
	}
	return relay.Unknown, false // whatever failed, it is met again
}

// awaitBefore waits until the entry before n was applied here: what may follow it depends on that.
func (l *Log) awaitBefore(r *leaderTerm, n uint64) error { return l.machine.position.Wait(r.ctx, n-1) }

// replaceParts takes what others have put in the place of an entry's parts out of their way.
func (l *Log) replaceParts(r *leaderTerm, f *flight) error {
	for i, p := range f.parts {
		path := tree.PartPath(f.n, i)
		if n, err := l.c.get(r.ctx, path); err != nil || !n.found || bytes.Equal(n.data, p) {
			if err != nil {
				return err
			}
			continue
		}
		l.hole.tell(l, fmt.Errorf("%w: %s%s is there, and this leader has not written it", tree.ErrDamaged, l.c.root, path))
		if err := r.delete([]string{path}); err != nil {
			return err
		}
	}
	return nil
}

// restoreBefore writes the entry before this one again, as it was, because somebody has deleted or changed it. Of one
// that a snapshot has nothing but its place is needed.
func (l *Log) restoreBefore(r *leaderTerm, f *flight) error {
	if err := l.awaitBefore(r, f.n); err != nil {
		return err
	}
	path := tree.EntryPath(f.n - 1)
	var data []byte
	var parts [][]byte
	if before := l.machine.lastEntry(f.n - 1); before != nil {
		data, parts = before.Encode()
	}
	n, err := l.c.get(r.ctx, path)
	if err != nil {
		return err
	}
	l.hole.tell(l, fmt.Errorf("%w: %s%s was deleted or changed after it was written", tree.ErrDamaged, l.c.root, path))
	ops := []any{r.c.create(path, data, 0)}
	if n.found {
		ops = append([]any{&zk.DeleteRequest{Path: r.c.root + path, Version: n.stat.Version}}, ops...)
	}
	switch _, err = r.writeFenced(ops...); {
	case errors.Is(err, zk.ErrNotEmpty):
		return l.c.purgeBelow(r.ctx, path) // it is met again
	case err == nil, errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists),
		errors.Is(err, zk.ErrNoNode) && n.found:
		return l.restoreParts(r, f.n-1, parts) // or it is met again
	}
	return r.c.wrapError("restore", path, err)
}

// restoreParts writes those parts of an entry again that are missing.
func (l *Log) restoreParts(r *leaderTerm, n uint64, parts [][]byte) error {
	for i, p := range parts {
		path := tree.PartPath(n, i)
		if _, err := r.writeFenced(r.c.create(path, p, 0)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return r.c.wrapError("restore", path, err)
		}
	}
	return nil
}

// purgeBelow deletes what others have put below a znode of ours that has nothing below it: as long as it is there, the
// znode cannot go.
func (c *client) purgeBelow(ctx context.Context, path string) error {
	n, err := c.children(ctx, path)
	for _, name := range n.children {
		below := path + "/" + name
		if err == nil {
			err = c.purgeBelow(ctx, below)
		}
		if err == nil {
			err = c.deleteHere(ctx, below)
		}
	}
	return err
}

package zk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rs/zerolog"
)

// Seed is what a tree begins with: the state of a federation that moves here.
type Seed struct {
	Federation [16]byte
	// Epoch and Lineage: those of the federation from here on. The lineage must be
	// new, so that no member of a former epoch talks to one of this tree.
	Epoch   uint64
	Lineage [16]byte
	// Term is the greatest that the state has seen: later ones are greater.
	Term uint64
	// Origin is the id of the export that the state comes from.
	Origin string
	// Entry is the number of the last entry in State, a snapshot of the machine.
	Entry uint64
	State io.Reader
}

// Found makes the tree of a federation that goes on from a given state, without a
// member: they enter with Join. ErrTree: the chroot is in use; nothing was
// written. If it is cut off it can be repeated with the same seed.
func Found(ctx context.Context, p Place, s Seed, log zerolog.Logger) error {
	if err := p.checkAccess(); err != nil {
		return fmt.Errorf("found %s: %w", p, err)
	}
	c, err := connect(p, nil, log)
	if err != nil {
		return fmt.Errorf("found %s: %w", p, err)
	}
	defer c.close()
	if err = c.unreachable(p, c.sow(ctx, s)); err != nil {
		return fmt.Errorf("found %s: %w", p, err)
	}
	return nil
}

func (c *client) sow(ctx context.Context, s Seed) error {
	n, err := c.get(ctx, pathFederation)
	if err == nil && n.found {
		err = c.taken(n.data, s.Origin)
	}
	if err == nil {
		err = c.ensureRoot(ctx)
	}
	if err == nil {
		err = c.ensure(ctx, pathSnapshots, nil)
	}
	if err != nil {
		return err
	}
	ptr := pointer{Entry: s.Entry, Term: s.Term}
	buf := make([]byte, maxPart)
	for {
		n, end := io.ReadFull(s.State, buf)
		if n > 0 {
			if err = c.sowChunk(ctx, &ptr, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(end, io.EOF) || errors.Is(end, io.ErrUnexpectedEOF) {
			break
		}
		if end != nil {
			return fmt.Errorf("read the state: %w", end)
		}
	}
	return plant(ctx, c, charter{
		Version: treeVersion, Federation: hex.EncodeToString(s.Federation[:]), Epoch: s.Epoch, Lineage: hex.EncodeToString(s.Lineage[:]),
		Origin: s.Origin,
	}, ptr, []string{pathSnapshots})
}

// taken says why a chroot that holds a federation is none for a seed.
func (c *client) taken(charter []byte, origin string) error {
	ch, err := parseCharter(c.root+pathFederation, charter)
	switch {
	case err != nil:
		return err
	case ch.Origin == origin && origin != "":
		return fmt.Errorf("%w: this state was imported at %s already: start the brokers", ErrTree, c.root)
	}
	return fmt.Errorf("%w: %s%s is there: name another chroot", ErrTree, c.root, pathFederation)
}

// sowChunk writes one chunk over what an interrupted attempt left.
func (c *client) sowChunk(ctx context.Context, p *pointer, data []byte) error {
	path := p.chunk(len(p.Sums))
	if err := c.ensure(ctx, path, nil); err != nil {
		return err
	}
	_, err := c.persist(ctx, "write", path, func() (node, error) {
		_, err := c.zk.Set(c.root+path, data, -1)
		return node{}, err
	})
	p.Sums = append(p.Sums, crc32.Checksum(data, castagnoli))
	p.Bytes += int64(len(data))
	return err
}

// ensureRoot makes the chroot and what is above it.
func (c *client) ensureRoot(ctx context.Context) error {
	whole := c.root
	for at := range whole {
		if at == 0 || whole[at] != '/' {
			continue
		}
		if err := c.ensureAbove(ctx, whole[:at]); err != nil {
			return err
		}
	}
	if whole == "" {
		return nil
	}
	return c.ensureAbove(ctx, whole)
}

// ensureAbove creates one path outside the tree; it may be somebody else's.
func (c *client) ensureAbove(ctx context.Context, path string) error {
	_, err := c.persist(ctx, "create", strings.TrimPrefix(path, c.root), func() (node, error) {
		if ok, _, err := c.zk.Exists(path); ok || err != nil {
			return node{}, err
		}
		_, err := c.zk.Create(path, nil, 0, c.acl)
		if errors.Is(err, zk.ErrNodeExists) {
			err = nil
		}
		return node{}, err
	})
	return err
}

// plant makes the tree in one transaction: all of it is there or nothing. The
// znode of entry ptr.Entry is the empty origin that the first append checks.
func plant(ctx context.Context, c *client, ch charter, ptr pointer, but []string) error {
	if err := c.ensureRoot(ctx); err != nil {
		return err
	}
	// Who may delete there could take /lead away, and with it the fence.
	if err := c.checkACL(ctx, ""); err != nil {
		return err
	}
	ops := []any{c.create(pathFederation, encode(ch), 0)}
	for _, n := range []struct {
		path string
		data []byte
	}{
		{markPath(ch.Lineage), nil},
		{pathLead, encode(leading{Term: ptr.Term})},
		{pathLog, nil},
		{logPath(ptr.Entry), nil},
		{pathParts, nil},
		{pathSnapshot, encode(ptr)},
		{pathSnapshots, nil},
		{pathMembers, nil},
		{pathVoters, nil},
		{pathPresent, nil},
	} {
		if len(but) == 0 || but[0] != n.path {
			ops = append(ops, c.create(n.path, n.data, 0))
		}
	}
	for {
		res, err := c.write(ctx, ops...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrNodeExists):
			return c.planted(ctx, ch, failedAt(res, err), ops)
		case !transient(err) || ctx.Err() != nil:
			return c.name("create the tree in", "", err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// planted says whether it was this charter's own transaction, whose answer was
// lost, that made the tree.
func (c *client) planted(ctx context.Context, ch charter, at int, ops []any) error {
	n, err := c.get(ctx, pathFederation)
	switch {
	case err != nil:
		return err
	case n.found && string(n.data) == string(encode(ch)):
		return nil
	}
	path := c.root
	if at >= 0 {
		path = ops[at].(*zk.CreateRequest).Path
	}
	return fmt.Errorf("%w: %s is there already: name an empty chroot", ErrTree, path)
}

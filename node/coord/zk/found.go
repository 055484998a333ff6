package zk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
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
	// Site imports it, and signs by By; nil where members have no keys.
	Site string
	By   command.Signer
}

// Found makes the tree of a federation that goes on from a given state, without a
// member: they enter with Join. ErrTree: the chroot is in use; nothing was
// written. ErrUnreachable: no call was answered for 15 s. If it is cut off it can be
// repeated, with another seed, too: of those that run at a time the one that began
// last goes on (claim).
func Found(ctx context.Context, p Place, s Seed, log zerolog.Logger) error {
	if err := foundAt(ctx, p, s, timingOf(LAN).open, log); err != nil {
		return fmt.Errorf("found %s: %w", p, err)
	}
	return nil
}

// foundAt is Found; it gives up an ensemble that has not answered for most.
func foundAt(ctx context.Context, p Place, s Seed, most time.Duration, log zerolog.Logger) error {
	if err := p.checkAccess(); err != nil {
		return err
	}
	c, err := connect(p, nil, log)
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := c.whileAnswered(ctx, most, errUnanswered)
	defer cancel()
	return c.unreachable(p, c.importSnapshot(ctx, s))
}

func (c *client) importSnapshot(ctx context.Context, s Seed) error {
	n, err := c.get(ctx, tree.FederationPath)
	if err == nil && n.found {
		err = c.taken(n.data, s.Origin)
	}
	if err == nil {
		err = c.ensureRoot(ctx)
	}
	var mine claim
	if err == nil {
		mine, err = c.claim(ctx, s.Origin)
	}
	if err != nil {
		return err
	}
	ptr := tree.Pointer{Entry: s.Entry, Term: s.Term}
	buf := make([]byte, tree.MaxPart)
	for {
		n, end := io.ReadFull(s.State, buf)
		if n > 0 {
			if err = c.importChunk(ctx, mine, &ptr, buf[:n]); err != nil {
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
	if s.By != nil {
		ptr.Sign(s.Lineage, s.Site, s.By)
	}
	return createTree(ctx, c, tree.Charter{
		Version: tree.Version, Federation: hex.EncodeToString(s.Federation[:]), Epoch: s.Epoch,
		Lineage: hex.EncodeToString(s.Lineage[:]),
		Origin:  s.Origin,
	}, ptr, &mine)
}

// taken says why a chroot that holds a federation is none for a seed.
func (c *client) taken(charter []byte, origin string) error {
	ch, err := tree.ParseCharter(c.root+tree.FederationPath, charter)
	switch {
	case err != nil:
		return err
	case ch.Origin == origin && origin != "":
		return fmt.Errorf("%w: this state was imported at %s already: start the brokers", tree.ErrTree, c.root)
	}
	return fmt.Errorf("%w: %s%s is there: name another chroot", tree.ErrTree, c.root, tree.FederationPath)
}

// importChunk writes one chunk over what an interrupted attempt left.
func (c *client) importChunk(ctx context.Context, mine claim, p *tree.Pointer, data []byte) error {
	path := p.Chunk(len(p.Sums))
	for _, op := range []any{c.create(path, nil, 0), c.set(path, data, -1)} {
		ops, at := []any{mine.check, op}, -1
		_, err := c.retryRead(ctx, "write", path, func() (node, error) {
			res, err := c.multi(ops)
			if at = failedAt(res, err); errors.Is(err, zk.ErrNodeExists) {
				err = nil
			}
			return node{}, err
		})
		if err = mine.lostError(err, at == 0); err != nil {
			return err
		}
	}
	p.Sums = append(p.Sums, tree.SumOf(data))
	p.Bytes += int64(len(data))
	return nil
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
	_, err := c.retryReadAt(ctx, "create", path, func() (node, error) {
		if ok, _, err := c.zk.Exists(path); ok || err != nil {
			return node{}, err
		}
		_, err := c.multi([]any{&zk.CreateRequest{Path: path, Acl: c.acl}})
		if errors.Is(err, zk.ErrNodeExists) {
			err = nil
		}
		return node{}, err
	})
	return err
}

// createTree makes the tree in one transaction: all of it is there or nothing. The
// znode of entry ptr.Entry is the empty origin that the first append checks. An
// import has made the place of the snapshots already, and its claim goes.
func createTree(ctx context.Context, c *client, ch tree.Charter, ptr tree.Pointer, mine *claim) error {
	if err := c.ensureRoot(ctx); err != nil {
		return err
	}
	// Who may delete there could take /lead away, and with it the fence.
	if err := c.checkACL(ctx, ""); err != nil {
		return err
	}
	ops := []any{
		c.create(tree.FederationPath, tree.Encode(ch), 0), // first: that it is there says more than what else fails
		c.create(tree.MarkPath(ch.Lineage), nil, 0),
		c.create(tree.LeadPath, tree.Encode(tree.LeadRecord{Term: ptr.Term}), 0),
		c.create(tree.LogPath, nil, 0),
		c.create(tree.EntryPath(ptr.Entry), nil, 0),
		c.create(tree.PartsPath, nil, 0),
		c.create(tree.SnapshotPath, tree.Encode(ptr), 0),
		c.create(tree.MembersPath, nil, 0),
		c.create(tree.VotersPath, nil, 0),
		c.create(tree.PresentPath, nil, 0),
	}
	if mine == nil {
		ops = append(ops, c.create(tree.SnapshotsPath, nil, 0))
	} else {
		ops = append(ops, &zk.DeleteRequest{Path: mine.check.Path, Version: mine.check.Version})
	}
	for {
		res, err := c.write(ctx, ops...)
		if mine != nil {
			err = mine.lostError(err, failedAt(res, err) == len(ops)-1)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrNodeExists):
			return c.findImported(ctx, ch, failedAt(res, err), ops)
		case !transient(err) || ctx.Err() != nil:
			return c.wrapError("create the tree in", "", err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// findImported says whether it was this charter's own transaction, whose answer was
// lost, that made the tree.
func (c *client) findImported(ctx context.Context, ch tree.Charter, at int, ops []any) error {
	n, err := c.get(ctx, tree.FederationPath)
	switch {
	case err != nil:
		return err
	case n.found && string(n.data) == string(tree.Encode(ch)):
		return nil
	}
	path := c.root
	if at >= 0 {
		path = ops[at].(*zk.CreateRequest).Path
	}
	return fmt.Errorf("%w: %s is there already: name an empty chroot", tree.ErrTree, path)
}

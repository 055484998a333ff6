package zk

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// claim is an import's right to write chunks below a chroot without a tree: the
// version of /importing. Who begins an import raises it; so of two at a time, or of
// one that was taken for dead, only the last writes on, and no chunk of one is in
// the tree of another.
type claim struct{ check *zk.CheckVersionRequest }

// claim begins an import. The place of the chunks comes with the first claim: a
// founder's tree, which has that place, is never written into.
func (c *client) claim(ctx context.Context, origin string) (claim, error) {
	for {
		n, err := c.get(ctx, tree.ImportingPath)
		if err != nil {
			return claim{}, err
		}
		ops := []any{c.set(tree.ImportingPath, []byte(origin), n.stat.Version)}
		if !n.found {
			ops = []any{c.create(tree.ImportingPath, []byte(origin), 0), c.create(tree.SnapshotsPath, nil, 0)}
		}
		res, err := c.write(ctx, ops...)
		switch {
		case err == nil && n.found:
			return claim{c.check(tree.ImportingPath, res[0].Stat.Version)}, nil
		case err == nil:
			return claim{c.check(tree.ImportingPath, 0)}, nil
		case errors.Is(err, zk.ErrNodeExists) && failedAt(res, err) == 1:
			return claim{}, fmt.Errorf("%w: %s%s is there already: name an empty chroot", tree.ErrTree, c.root, tree.SnapshotsPath)
		case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
			// Another one began, or has ended; or this was it, and its answer lost.
		case !transient(err) || ctx.Err() != nil:
			return claim{}, c.wrapError("begin the import at", tree.ImportingPath, err)
		}
	}
}

// lostError says what the error of a transaction means that failed at the claim.
func (m claim) lostError(err error, here bool) error {
	if !here || !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return fmt.Errorf("%w: another import began since this one did, or has ended (%s): let one end, and look with cloudshare zk inspect", tree.ErrTree, m.check.Path)
}

package zk

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
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
		n, err := c.get(ctx, pathImporting)
		if err != nil {
			return claim{}, err
		}
		ops := []any{c.set(pathImporting, []byte(origin), n.stat.Version)}
		if !n.found {
			ops = []any{c.create(pathImporting, []byte(origin), 0), c.create(pathSnapshots, nil, 0)}
		}
		res, err := c.write(ctx, ops...)
		switch {
		case err == nil && n.found:
			return claim{c.check(pathImporting, res[0].Stat.Version)}, nil
		case err == nil:
			return claim{c.check(pathImporting, 0)}, nil
		case errors.Is(err, zk.ErrNodeExists) && failedAt(res, err) == 1:
			return claim{}, fmt.Errorf("%w: %s%s is there already: name an empty chroot", ErrTree, c.root, pathSnapshots)
		case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
			// Another one began, or has ended; or this was it, and its answer lost.
		case !transient(err) || ctx.Err() != nil:
			return claim{}, c.name("begin the import at", pathImporting, err)
		}
	}
}

// lost says what the error of a transaction means that failed at the claim.
func (m claim) lost(err error, here bool) error {
	if !here || !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return fmt.Errorf("%w: another import began since this one did, or has ended (%s): let one end, and look with cloudshare zk inspect", ErrTree, m.check.Path)
}

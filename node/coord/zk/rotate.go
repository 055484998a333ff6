package zk

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// Rotate gives every znode of a federation's tree to the holder of the place's credentials alone, who needs the former
// ones, too (Place.Former): they open nothing any more. Brokers may run meanwhile; what those write that have both
// credentials stays open to both, so it is to be repeated once none has. It returns how many znodes it has given away,
// and can be repeated wherever it is cut off. Errors: ErrUnreachable, ErrNoTree, ErrDenied.
func Rotate(ctx context.Context, p Place, log zerolog.Logger) (znodes int, err error) {
	if err = p.checkAccess(); err == nil {
		znodes, err = rotate(ctx, p, log)
	}
	if err != nil {
		return znodes, fmt.Errorf("rotate the credentials of %s: %w", p, err)
	}
	return znodes, nil
}

func rotate(ctx context.Context, p Place, log zerolog.Logger) (znodes int, err error) {
	c, err := connect(p, nil, log)
	if err != nil {
		return 0, err
	}
	defer c.close()
	c.patience = timingOf(LAN).open
	ch, err := c.readCharter(ctx)
	switch {
	case err != nil:
		return 0, c.unreachable(p, err)
	case ch == nil:
		return 0, fmt.Errorf("%w: %s%s does not exist: check the chroot", ErrNoTree, c.root, tree.FederationPath)
	}
	err = c.give(ctx, "", zk.DigestACL(zk.PermAll, p.User, p.Password), &znodes)
	return znodes, c.unreachable(p, err)
}

// give sets the ACL of a znode and of all below it, the upper ones first: what is created meanwhile is denied to who
// has not the new one.
func (c *client) give(ctx context.Context, path string, acl []zk.ACL, znodes *int) error {
	_, err := c.retryRead(ctx, "set the ACL of", path, func() (node, error) {
		_, err := c.zk.SetACL(c.root+path, acl, -1)
		return node{}, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil // it is gone by now
	}
	if err != nil {
		return err
	}
	*znodes++
	below, err := c.children(ctx, path)
	for _, name := range below.children {
		if err == nil {
			err = c.give(ctx, path+"/"+name, acl, znodes)
		}
	}
	return err
}

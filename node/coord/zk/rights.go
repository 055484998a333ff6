package zk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"
)

// checkACL refuses a znode that is not for the holder of the credentials alone.
func (c *client) checkACL(ctx context.Context, path string) error {
	var acl []zk.ACL
	_, err := c.retryRead(ctx, "read the ACL of", path, func() (node, error) {
		list, _, err := c.zk.GetACL(cmp.Or(c.root+path, "/"))
		acl = list
		return node{}, err
	})
	for _, a := range acl {
		if err == nil && a.Scheme == "world" && a.Perms&^zk.PermRead != 0 {
			err = fmt.Errorf("%w: anybody may change %s: give it to the digest user alone, or name a chroot that is not there yet",
				ErrDenied, cmp.Or(c.root+path, "/"))
		}
	}
	return err
}

// denial is a server's refusal for want of rights, with the znode whose ACL says so.
type denial struct {
	path string
	err  error
}

// Error implements error.
func (d *denial) Error() string { return d.err.Error() + " at " + d.path }

// Unwrap makes errors.Is find the server's answer.
func (d *denial) Unwrap() error { return d.err }

// annotateACLError finds the znode whose ACL made a transaction fail: for one that is to come
// or to go, that is its parent.
func annotateACLError(ops []any, res []zk.MultiResponse, err error) error {
	at := failedAt(res, err)
	if !errors.Is(err, zk.ErrNoAuth) || at < 0 || at >= len(ops) {
		return err
	}
	switch op := ops[at].(type) {
	case *zk.CreateRequest:
		return &denial{path.Dir(op.Path), err}
	case *zk.DeleteRequest:
		return &denial{path.Dir(op.Path), err}
	case *zk.SetDataRequest:
		return &denial{op.Path, err}
	case *zk.CheckVersionRequest:
		return &denial{op.Path, err}
	}
	return err
}

// wrapPathError makes an error say what was done to which path.
func wrapPathError(verb, whole string, err error) error {
	var d *denial
	switch whole = cmp.Or(whole, "/"); {
	case err == nil:
		return nil
	case errors.As(err, &d) && d.path != whole:
		return fmt.Errorf("%s %s: %w: the ensemble denies it: check the digest credentials and the ACL of %s", verb, whole, ErrDenied, d.path)
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("%s %s: %w: the ensemble denies it: check the digest credentials and the znode's ACL", verb, whole, ErrDenied)
	case err.Error() == codeSASL:
		return fmt.Errorf("%s %s: %w: the ensemble demands SASL, and brokers have digest credentials only: allow those there, or name another ensemble",
			verb, whole, ErrDenied)
	case err.Error() == codeQuota:
		return fmt.Errorf("%s %s: %w: the ensemble's quota there is used up: have it raised (it must hold 20000 znodes and 1 GiB), or name another chroot",
			verb, whole, ErrDenied)
	}
	return fmt.Errorf("%s %s: %w", verb, whole, err)
}

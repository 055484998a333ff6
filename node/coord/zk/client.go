package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
)

// client is one connection to the ensemble, as long as the member lives: the
// library reconnects, and begins a new session when one has expired. Its calls
// have no context and no paths in their errors; these do.
type client struct {
	zk     *zk.Conn
	dialer *dialer
	events <-chan zk.Event
	root   string
	acl    []zk.ACL
	// mark is the path that only this member's tree has (markPath); "" until its
	// charter was read. It is set before other goroutines use the client.
	mark string
	// patience is how long a call is repeated while nothing is answered; 0 = as long as
	// its context lives. It is set before other goroutines use the client.
	patience time.Duration
	wg       sync.WaitGroup // of calls under way, also those that nobody waits for

	// changed fires when the connection or the session does.
	changed coord.Broadcast
	// connects counts the connections that had a session.
	connects atomic.Uint64
	up       atomic.Bool  // there is a session and a connection
	lost     atomic.Int64 // since when not (sinceStart); 0 = up
	heard    atomic.Int64 // when a call was answered last (sinceStart)
	shut     atomic.Bool
	authed   chan struct{} // closed once the credentials were taken
	refused  atomic.Bool   // a server said no to them
}

// connect begins a client; it does not wait for a server.
func connect(p Place, d dial, log zerolog.Logger) (*client, error) {
	c := &client{
		dialer: &dialer{dial: d, tls: p.TLS, most: max(p.session()*2/3, 500*time.Millisecond)}, root: p.Chroot,
		acl: zk.DigestACL(zk.PermAll, p.User, p.Password), authed: make(chan struct{}),
	}
	credentials := []string{p.User + ":" + p.Password}
	if user, password, has := strings.Cut(p.Former, ":"); has {
		c.acl = append(c.acl, zk.DigestACL(zk.PermAll, user, password)...)
		credentials = append(credentials, p.Former)
	}
	c.lost.Store(int64(sinceStart()))
	servers := slices.Clone(p.Servers)
	var err error
	c.zk, c.events, err = zk.Connect(servers, p.session(), zk.WithDialer(c.dialer.open), zk.WithHostProvider(&hosts{}),
		zk.WithLogInfo(false), zk.WithLogger(zkLogger{log}), zk.WithEventCallback(c.event),
		zk.WithMaxBufferSize(16<<20))
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	c.wg.Go(func() {
		// The library repeats it after each reconnect, but only once it succeeded.
		for len(credentials) > 0 && !c.shut.Load() {
			err := c.zk.AddAuth("digest", []byte(credentials[0]))
			if errors.Is(err, zk.ErrAuthFailed) {
				c.refused.Store(true)
			}
			if err == nil {
				credentials = credentials[1:]
			}
		}
		if len(credentials) == 0 {
			close(c.authed)
		}
	})
	return c, nil
}

// zkLogger passes on what the library says, as details.
type zkLogger struct{ log zerolog.Logger }

// Printf implements zk.Logger.
func (q zkLogger) Printf(format string, a ...any) { q.log.Debug().Msgf("zookeeper: "+format, a...) }

// event is called by the library's goroutines and must not block.
func (c *client) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		c.connects.Add(1)
		c.lost.Store(0)
		c.up.Store(true)
	case zk.StateExpired, zk.StateDisconnected:
		c.up.Store(false)
		c.lost.CompareAndSwap(0, int64(sinceStart()))
	default:
		return
	}
	c.changed.Fire()
}

// disconnectedFor is for how long there has been no connection.
func (c *client) disconnectedFor() time.Duration {
	if at := c.lost.Load(); at != 0 {
		return sinceStart() - time.Duration(at)
	}
	return 0
}

var processStart = time.Now()

// sinceStart returns a clock that nobody sets.
func sinceStart() time.Duration { return time.Since(processStart) }

// close ends the session, and with it the ephemerals, if a server can be
// reached; it waits for all calls.
func (c *client) close() {
	c.shut.Store(true)
	c.zk.Close()
	c.dialer.close()
	for range c.events { // closed when the library's goroutines have ended
	}
	c.wg.Wait()
}

// errLost is in every error but the server's own answers: there was no
// connection, or it ended before the answer. The library returns whatever the
// network said, too, so those cannot be listed.
var errLost = errors.New("no answer")

// transient reports whether a call may succeed later. The outcome of a write is
// unknown then.
func transient(err error) bool { return errors.Is(err, errLost) }

// markLost marks what is not an answer of the server.
func markLost(err error) error {
	for _, e := range []error{
		nil, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrInvalidACL,
		zk.ErrInvalidPath,
		zk.ErrNoChildrenForEphemerals, zk.ErrAuthFailed, zk.ErrAPIError, zk.ErrBadArguments, zk.ErrShortBuffer,
	} {
		if errors.Is(err, e) {
			return err
		}
	}
	// a code that the library does not know
	if text := err.Error(); strings.HasPrefix(text, "unknown error: ") && text != codeThrottled {
		return err
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// codeThrottled is said by a server that did not execute a call, for want of time.
// codeSASL is its word for clients that do not authenticate with SASL, codeQuota
// for a quota that somebody set and that is used up.
const (
	codeThrottled = "unknown error: -127"
	codeSASL      = "unknown error: -124"
	codeQuota     = "unknown error: -125"
)

// unreachable says of an error that was no answer where it was looked for.
func (c *client) unreachable(p Place, err error) error {
	switch why := c.dialer.lastError(); {
	case err == nil || !transient(err):
		return err
	case c.refused.Load():
		return fmt.Errorf("%w: %s takes no digest credentials, and brokers have no others: allow them there, or name another ensemble: %w", ErrDenied, p, err)
	case why != nil:
		return fmt.Errorf("%w: %s: start it, or check the addresses and the network: %w: last tried was %w", ErrUnreachable, p, err, why)
	}
	return fmt.Errorf("%w: %s: start it, or check the addresses and the network: %w", ErrUnreachable, p, err)
}

// node is what one call returned.
type node struct {
	data     []byte
	children []string
	stat     zk.Stat
	found    bool
	watch    <-chan zk.Event
}

// once runs one call of the library; ctx ends the waiting, not the call. What is
// sent before the credentials is denied.
func once[T any](ctx context.Context, c *client, call func() (T, error)) (v T, err error) {
	select {
	case <-c.authed:
	case <-ctx.Done():
		return v, fmt.Errorf("%w: %w", errLost, context.Cause(ctx))
	}
	type end struct {
		v   T
		err error
	}
	ch := make(chan end, 1)
	c.wg.Go(func() {
		got, cause := call()
		ch <- end{got, markLost(cause)}
	})
	select {
	case e := <-ch:
		if !transient(e.err) {
			c.heard.Store(int64(sinceStart()))
		}
		return e.v, e.err
	case <-ctx.Done():
		return v, fmt.Errorf("%w: %w", errLost, context.Cause(ctx))
	}
}

// whileAnswered is for a row of calls: the context ends once none of the client's
// was answered for so long, however long the row takes.
func (c *client) whileAnswered(
	ctx context.Context, most time.Duration, cause error,
) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	begun := sinceStart()
	c.wg.Go(func() {
		for ctx.Err() == nil {
			left := most - (sinceStart() - max(begun, time.Duration(c.heard.Load())))
			if left <= 0 {
				end(cause)
				return
			}
			t := time.NewTimer(left)
			select {
			case <-t.C:
			case <-ctx.Done():
			}
			t.Stop()
		}
	})
	return ctx, func() { end(context.Canceled) }
}

// retryRead repeats a call that changes nothing, or may be repeated, while it fails
// for want of a connection.
func (c *client) retryRead(ctx context.Context, verb, path string, call func() (node, error)) (node, error) {
	return c.retryReadAt(ctx, verb, c.root+path, call)
}

// retryReadAt is retryRead for a whole path, which may be outside the tree.
func (c *client) retryReadAt(ctx context.Context, verb, whole string, call func() (node, error)) (node, error) {
	if c.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = c.whileAnswered(ctx, c.patience, errUnanswered)
		defer cancel()
	}
	for {
		changed := c.changed.Wait()
		n, err := once(ctx, c, call)
		if err == nil || !transient(err) {
			return n, wrapPathError(verb, whole, err)
		}
		t := time.NewTimer(100 * time.Millisecond)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return node{}, wrapPathError(verb, whole, err)
		}
	}
}

// wrapError makes an error say what was done to which path of the tree.
func (c *client) wrapError(verb, path string, err error) error {
	return wrapPathError(verb, c.root+path, err)
}

// get reads a znode; found is false without an error if there is none.
func (c *client) get(ctx context.Context, path string) (node, error) {
	return c.retryRead(ctx, "read", path, func() (node, error) {
		data, stat, err := c.zk.Get(c.root + path)
		return statNode(node{data: data}, stat, err)
	})
}

func statNode(n node, stat *zk.Stat, err error) (node, error) {
	if errors.Is(err, zk.ErrNoNode) {
		return node{watch: n.watch}, nil
	}
	if err == nil {
		n.stat, n.found = *stat, true
	}
	return n, err
}

// exists looks for a znode, and watches for its creation or end.
func (c *client) exists(ctx context.Context, path string) (node, error) {
	return c.retryRead(ctx, "watch", path, func() (node, error) {
		ok, stat, watch, err := c.zk.ExistsW(c.root + path)
		if err != nil {
			return node{}, err
		}
		return node{found: ok, stat: *stat, watch: watch}, nil
	})
}

// getW reads a znode that must be there, and watches it.
func (c *client) getW(ctx context.Context, path string) (node, error) {
	return c.retryRead(ctx, "read", path, func() (node, error) {
		data, stat, watch, err := c.zk.GetW(c.root + path)
		return statNode(node{data: data, watch: watch}, stat, err)
	})
}

// children lists a znode that must be there.
func (c *client) children(ctx context.Context, path string) (node, error) {
	return c.retryRead(ctx, "list", path, func() (node, error) {
		names, stat, err := c.zk.Children(c.root + path)
		return statNode(node{children: names}, stat, err)
	})
}

// childrenW is children with a watch.
func (c *client) childrenW(ctx context.Context, path string) (node, error) {
	return c.retryRead(ctx, "list", path, func() (node, error) {
		names, stat, watch, err := c.zk.ChildrenW(c.root + path)
		return statNode(node{children: names, watch: watch}, stat, err)
	})
}

// write sends one transaction once: after a transient error its outcome is not
// known. The stats are those of the operations that have one.
func (c *client) write(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return once(ctx, c, func() ([]zk.MultiResponse, error) { return c.multi(ops) })
}

// multi returns the library's transaction, with the path in a denial.
func (c *client) multi(ops []any) ([]zk.MultiResponse, error) {
	res, err := c.zk.Multi(ops...)
	return res, annotateACLError(ops, res, err)
}

// writeHere is write for operations that must land in this member's own tree,
// whatever was put in its place meanwhile. The check comes last, so that it moves
// no position in an answer.
func (c *client) writeHere(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	res, err := c.write(ctx, c.withMarkCheck(ops...)...)
	if errors.Is(err, zk.ErrNoNode) && failedAt(res, err) == len(ops) {
		err = c.otherTreeError()
	}
	return res, err
}

// ensure creates a znode unless it is there; once the mark is known, in this
// member's tree only.
func (c *client) ensure(ctx context.Context, path string, data []byte) error {
	ops := []any{c.create(path, data, 0)}
	if c.mark != "" {
		ops = c.withMarkCheck(ops...)
	}
	at := 0
	_, err := c.retryRead(ctx, "create", path, func() (node, error) {
		res, err := c.multi(ops)
		if at = failedAt(res, err); errors.Is(err, zk.ErrNodeExists) {
			err = nil
		}
		return node{}, err
	})
	if errors.Is(err, zk.ErrNoNode) && at == 1 {
		return c.otherTreeError()
	}
	return err
}

// deleteHere deletes a znode of this member's tree, if it is there.
func (c *client) deleteHere(ctx context.Context, path string) error {
	ops := c.withMarkCheck(c.remove(path))
	at := 0
	_, err := c.retryRead(ctx, "delete", path, func() (node, error) {
		res, err := c.multi(ops)
		if at = failedAt(res, err); errors.Is(err, zk.ErrNoNode) && at == 0 {
			err = nil
		}
		return node{}, err
	})
	if errors.Is(err, zk.ErrNoNode) && at == 1 {
		return c.otherTreeError()
	}
	return err
}

// withMarkCheck adds the check of the mark.
func (c *client) withMarkCheck(ops ...any) []any {
	return append(slices.Clone(ops), c.check(c.mark, -1))
}

// otherTreeError returns the error of a tree without the mark.
func (c *client) otherTreeError() error {
	return fmt.Errorf("%w: %s%s is missing: somebody has put another tree in the place of this broker's, or deletes in it: name the chroot of its own",
		ErrIdentity, c.root, c.mark)
}

// create and check are operations of a transaction.
func (c *client) create(path string, data []byte, flags int32) *zk.CreateRequest {
	return &zk.CreateRequest{Path: c.root + path, Data: data, Acl: c.acl, Flags: flags}
}

func (c *client) check(path string, version int32) *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: c.root + path, Version: version}
}

func (c *client) set(path string, data []byte, version int32) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: c.root + path, Data: data, Version: version}
}

func (c *client) remove(path string) *zk.DeleteRequest {
	return &zk.DeleteRequest{Path: c.root + path, Version: -1}
}

// failedAt returns the operation that made a transaction fail, -1 if that is not known.
func failedAt(res []zk.MultiResponse, err error) int {
	return slices.IndexFunc(res, func(r zk.MultiResponse) bool { return r.Error != nil && errors.Is(err, r.Error) })
}

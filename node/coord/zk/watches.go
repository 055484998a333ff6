package zk

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord"
)

// watches holds at most one watch on each path. The library keeps every watch
// that is set until it fires, so none is set twice.
type watches struct {
	fired chan struct{} // signalled when one has fired

	mu    sync.Mutex
	armed map[string]bool
}

func newWatches() *watches {
	return &watches{fired: make(chan struct{}, 1), armed: map[string]bool{}}
}

func (w *watches) isArmed(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.armed[path]
}

func (w *watches) arm(c *client, path string, watch <-chan zk.Event) {
	if watch == nil {
		return
	}
	w.mu.Lock()
	w.armed[path] = true
	w.mu.Unlock()
	c.wg.Go(func() {
		<-watch // closed when the client is
		w.mu.Lock()
		delete(w.armed, path)
		w.mu.Unlock()
		coord.Signal(w.fired)
	})
}

// read reads a znode that may be absent, and watches it.
func (w *watches) read(ctx context.Context, c *client, path string) (node, error) {
	for {
		if w.isArmed(path) {
			return c.get(ctx, path)
		}
		n, err := c.getW(ctx, path)
		if err != nil || n.found {
			w.arm(c, path, n.watch)
			return n, err
		}
		if n, err = w.expect(ctx, c, path); err != nil || !n.found {
			return n, err
		} // created in between
	}
}

// expect looks for a znode that is yet to come, and watches for it.
func (w *watches) expect(ctx context.Context, c *client, path string) (node, error) {
	if w.isArmed(path) {
		return c.get(ctx, path)
	}
	n, err := c.exists(ctx, path)
	w.arm(c, path, n.watch)
	return n, err
}

// list lists a znode and watches its children.
func (w *watches) list(ctx context.Context, c *client, path string) (node, error) {
	if w.isArmed(path) {
		return c.children(ctx, path)
	}
	n, err := c.childrenW(ctx, path)
	w.arm(c, path, n.watch)
	return n, err
}

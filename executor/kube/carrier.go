package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
	"github.com/cloudshare/cloudshare/executor/kube/guard"
)

// carrier gives files to pods, and takes those that they have left.
type carrier struct {
	works *workSet
	key   []byte // see leases
	// streams are what pods send now: Close waits for them.
	streams sync.WaitGroup
}

var _ carry.Site = (*carrier)(nil)

// IsOf implements carry.Site.
func (c *carrier) IsOf(attempt, token string) bool { return guard.IsToken(c.key, attempt, token) }

// find returns an attempt that has not ended. REQUIRES: workSet.mu held.
func (c *carrier) find(attempt string) (*work, error) {
	w := c.works.attempts.Get(attempt)
	if w == nil || !w.carried || w.Ended != nil || w.declined {
		return nil, carry.ErrGone
	}
	if c.works.attempts.Closed() {
		return nil, attempts.ErrClosed
	}
	return w, nil
}

// Files implements carry.Site.
func (c *carrier) Files(attempt string) (l carry.List, err error) {
	c.works.mu.Lock()
	w, err := c.find(attempt)
	c.works.mu.Unlock()
	if err != nil {
		return nil, err
	}
	in, err := os.Open(filepath.Join(w.dir, listFile))
	if err != nil {
		return nil, fmt.Errorf("read which files it has: %w", err)
	}
	defer in.Close()
	for d := json.NewDecoder(bufio.NewReaderSize(in, maxListed)); ; {
		var item carry.Item
		if err = d.Decode(&item); errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read which files it has: %w", err)
		}
		l = append(l, item)
	}
}

// Sent implements carry.Site.
func (c *carrier) Sent(attempt, run string) (st carry.State, err error) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	w, err := c.find(attempt)
	if err != nil {
		return st, err
	}
	return w.sent(run), nil
}

// sent is how much of what an attempt has left is here. REQUIRES: workSet.mu held.
func (w *work) sent(run string) carry.State {
	w.moved.Store(executor.Boottime())
	if st, err := os.Stat(filepath.Join(w.dir, leftFile)); err == nil {
		return carry.State{Have: st.Size(), Whole: true}
	}
	var sender string
	if err := readJSON(filepath.Join(w.dir, senderFile), &sender); err != nil || sender != run {
		return carry.State{}
	}
	return carry.State{Have: sizeOf(filepath.Join(w.dir, partFile))}
}

// errElsewhere: who sends asks again where to begin.
var errElsewhere = errors.New("not where the handler stands, or somebody sends already")

// Receive implements carry.Site.
func (c *carrier) Receive(_ context.Context, attempt, run string, from int64, in io.Reader) (carry.State, error) {
	w, err := c.begin(attempt, run, from)
	if err != nil {
		return carry.State{}, err
	}
	defer func() {
		c.works.mu.Lock()
		w.receiving = false
		c.works.mu.Unlock()
		c.streams.Done()
	}()
	part := filepath.Join(w.dir, partFile)
	bound := most(&w.Task) + framing
	size, err := appendFrom(part, from, &moving{in, w}, bound)
	if err == nil && size > bound {
		err = fmt.Errorf("%w: more than %d bytes", carry.ErrGarbled, bound)
	}
	if err == nil {
		err = check(part, most(&w.Task))
	}
	switch {
	case errors.Is(err, carry.ErrGarbled):
		return carry.State{}, errors.Join(err, os.Remove(part))
	case err != nil:
		return carry.State{}, err
	}
	return carry.State{Have: size, Whole: true}, c.finish(w)
}

// begin notes that a pod sends, and which life of it.
func (c *carrier) begin(attempt, run string, from int64) (*work, error) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	w, err := c.find(attempt)
	if err != nil {
		return nil, err
	}
	st := w.sent(run)
	if w.receiving || st.Whole || from != 0 && from != st.Have {
		return nil, errElsewhere
	}
	if from == 0 {
		if err = writeFile(w.dir, senderFile, run); err != nil {
			return nil, err
		}
	}
	w.receiving = true
	c.streams.Add(1)
	return w, nil
}

// finish makes what was received the attempt's, if that has not ended meanwhile.
func (c *carrier) finish(w *work) error {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	if _, err := c.find(w.Name); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(w.dir, partFile), filepath.Join(w.dir, leftFile)); err != nil {
		return err
	}
	return attempts.Sync(w.dir)
}

package tes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxParsed bounds the texts that are read at once: one of 8 MiB may take sixty times as much memory.
	maxParsed = 2
	// maxBringing bounds the tasks whose inputs are brought at once, userBringing those of one user: they may take
	// minutes, and each holds files of the store open.
	maxBringing  = 16
	userBringing = 4
	// turnWait is for how long a task waits for others whose inputs are brought.
	turnWait = time.Minute
)

// turns bounds what is under way for tasks that are being created.
type turns struct {
	parsing chan struct{} // has one for each text that is read

	mu    sync.Mutex
	of    map[string]int // tasks whose inputs are brought, by user; Invariant: none is 0
	all   int            // Invariant: the sum of of
	freed chan struct{}  // closed, and another made, when there are fewer of them
}

func newTurns() *turns {
	return &turns{parsing: make(chan struct{}, maxParsed), of: map[string]int{}, freed: make(chan struct{})}
}

// read reads a text when it is its turn.
func (t *turns) read(ctx context.Context, f func() error) error {
	select {
	case t.parsing <- struct{}{}:
		defer func() { <-t.parsing }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// bring waits until a user's inputs may be brought; the caller calls done when they are.
func (t *turns) bring(ctx context.Context, user string) (done func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, turnWait, fmt.Errorf(
		"%w: the inputs of other tasks are still being brought, %d of them for one user at most: send this one again later",
		node.ErrFull, userBringing))
	defer cancel()
	for {
		freed, mine := t.take(user)
		if mine {
			return func() { t.leave(user) }, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take takes a turn of a user's if there is one, or returns what is closed when there may be.
func (t *turns) take(user string) (freed <-chan struct{}, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all >= maxBringing || t.of[user] >= userBringing {
		return t.freed, false
	}
	t.of[user]++
	t.all++
	return nil, true
}

func (t *turns) leave(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.of[user]--; t.of[user] == 0 {
		delete(t.of, user)
	}
	close(t.freed)
	t.freed = make(chan struct{})
}

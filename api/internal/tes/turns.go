package tes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxParsed bounds the texts that are read at once, each of 8 MiB with 100,000 values at most, and maxSmallParsed
	// those of smallText bytes at most besides: whoever sends large ones holds up nobody's small ones.
	maxParsed      = 2
	maxSmallParsed = 64
	smallText      = 16 << 10
	// maxLooking bounds the requests that look whether their files are here, userLooking those of one user: a file
	// system that does not answer holds up no others'.
	maxLooking  = 16
	userLooking = 4
	// turnWait is for how long a request waits for others that look.
	turnWait = 10 * time.Second
)

// turns bounds what is under way for tasks that are being created.
type turns struct {
	parsing      chan struct{} // has one for each text that is read
	parsingSmall chan struct{} // has one for each small one

	mu    sync.Mutex
	looks counts        // requests that look for files
	freed chan struct{} // closed, and another made, when there are fewer of them
}

func newTurns() *turns {
	return &turns{
		parsing: make(chan struct{}, maxParsed), parsingSmall: make(chan struct{}, maxSmallParsed),
		looks: counts{of: map[string]int{}}, freed: make(chan struct{}),
	}
}

// read reads a text of so many bytes when it is its turn.
func (t *turns) read(ctx context.Context, size int, f func() error) error {
	turn := t.parsing
	if size <= smallText {
		turn = t.parsingSmall
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look waits until a user's files may be looked for; the caller calls done when they were.
func (t *turns) look(ctx context.Context, user string) (done func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, turnWait, fmt.Errorf(
		"%w: files of other tasks are still being looked for, of %d for one user at most: send this one again later",
		node.ErrFull, userLooking))
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
	if t.looks.all >= maxLooking || t.looks.of[user] >= userLooking {
		return t.freed, false
	}
	t.looks.add(user, 1)
	return nil, true
}

func (t *turns) leave(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looks.add(user, -1)
	close(t.freed)
	t.freed = make(chan struct{})
}

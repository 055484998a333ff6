package auth

import (
	"context"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// recheck bounds how long a timer waits for the end of a token: the clock that says when that is may be set meanwhile.
const recheck = time.Minute

// live are the requests that are being answered, by their token, and by their session. They end with it: streams, logs
// that are followed, reads that block, long submissions. All methods may be called from any goroutine.
type live struct {
	find func(id string) (access.Token, error)

	mu     sync.Mutex
	last   uint64             // request; guarded by mu
	tokens map[string]*holder // by ID, and sessions; guarded by mu. Invariant: each has requests under way
}

// holder is a token with requests under way.
type holder struct {
	end      *time.Timer                        // nil: it never expires, or is not known yet; guarded by live.mu
	requests map[uint64]context.CancelCauseFunc // by their numbers
}

func newLive(find func(id string) (access.Token, error)) *live {
	return &live{find: find, tokens: map[string]*holder{}}
}

// Hold returns the context of a request, which ends with the token of who asks, until release is called.
func (a *Auth) Hold(ctx context.Context, who node.Asker) (held context.Context, release func(), err error) {
	if who.Token == "" {
		return ctx, func() {}, nil
	}
	return a.live.hold(ctx, who.Token)
}

func (l *live) hold(ctx context.Context, id string) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	n := l.add(id, cancel)
	release := func() {
		l.remove(id, n)
		cancel(nil)
	}
	token, err := l.find(id) // only now: what ends it from here on, ends the request
	if err != nil {
		release()
		return nil, nil, unproven(err)
	}
	l.watch(token)
	return ctx, release, nil
}

func (l *live) add(id string, cancel context.CancelCauseFunc) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.tokens[id]
	if h == nil {
		h = &holder{requests: map[uint64]context.CancelCauseFunc{}}
		l.tokens[id] = h
	}
	l.last++
	h.requests[l.last] = cancel
	return l.last
}

func (l *live) remove(id string, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.tokens[id]
	if h == nil {
		return // ended
	}
	delete(h.requests, n)
	if len(h.requests) == 0 {
		l.drop(id, h)
	}
}

// drop forgets a token. REQUIRES: l.mu held.
func (l *live) drop(id string, h *holder) {
	if h.end != nil {
		h.end.Stop()
	}
	delete(l.tokens, id)
}

// watch has the requests of a token end when it expires.
func (l *live) watch(t access.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.tokens[t.ID]
	if t.Expires.IsZero() || h == nil || h.end != nil {
		return
	}
	h.end = time.AfterFunc(min(time.Until(t.Expires), recheck), func() { l.check(t.ID) })
}

// check ends the requests of a token that does not hold any more, and watches it on otherwise.
func (l *live) check(id string) {
	token, err := l.find(id)
	if err != nil {
		l.end(id, unproven(err))
		return
	}
	l.mu.Lock()
	if h := l.tokens[id]; h != nil {
		h.end = nil
	}
	l.mu.Unlock()
	l.watch(token)
}

func (l *live) end(id string, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.tokens[id]
	if h == nil {
		return
	}
	for _, cancel := range h.requests {
		cancel(why)
	}
	l.drop(id, h)
}

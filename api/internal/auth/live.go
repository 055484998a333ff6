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
	tokens map[string]*holder // by ID, and sessions; guarded by mu. Invariant: each has requests under way
}

// holder is a token with requests under way. Its fields are guarded by live.mu.
type holder struct {
	id       string
	end      *time.Timer // nil: it never expires, or is not known yet
	requests []*request
	one      [1]*request // room for what most tokens have
}

// request is one under way.
type request struct {
	cancel context.CancelCauseFunc
	by     *holder
	at     int // in by.requests, −1: it is not there any more; guarded by live.mu
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
	q := l.add(id, cancel)
	release := func() {
		l.remove(q)
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

func (l *live) add(id string, cancel context.CancelCauseFunc) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.tokens[id]
	if h == nil {
		h = &holder{id: id}
		h.requests = h.one[:0]
		l.tokens[id] = h
	}
	q := &request{cancel, h, len(h.requests)}
	h.requests = append(h.requests, q)
	return q
}

func (l *live) remove(q *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := q.by
	if l.tokens[h.id] != h || q.at < 0 {
		return // ended, or removed before
	}
	last := len(h.requests) - 1
	moved := h.requests[last]
	h.requests[q.at], h.requests[last] = moved, nil
	moved.at, q.at = q.at, -1
	if h.requests = h.requests[:last]; last == 0 {
		l.drop(h)
	}
}

// drop forgets a token. REQUIRES: l.mu held.
func (l *live) drop(h *holder) {
	if h.end != nil {
		h.end.Stop()
	}
	delete(l.tokens, h.id)
}

// watch has the requests of a token end when it expires.
func (l *live) watch(t access.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.tokens[t.ID]
	if t.Expires.IsZero() || h == nil || h.end != nil {
		return
	}
	id := t.ID // the token itself need not outlive this call
	h.end = time.AfterFunc(min(time.Until(t.Expires), recheck), func() { l.check(id) })
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
	for _, q := range h.requests {
		q.cancel(why)
	}
	l.drop(h)
}

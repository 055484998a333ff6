package auth

import (
	"context"
	"net/http"
)

// holder names a session among what has requests under way: no ID of a token begins so.
func (k sessionKey) holder() string { return "session " + string(k[:]) }

// HoldSession returns the context of a request that ends with the session by which it came, if it did, until release is
// called. The request that ends the session is answered.
func (a *Auth) HoldSession(ctx context.Context, r *http.Request) (held context.Context, release func(), err error) {
	if path := r.URL.EscapedPath(); a.FormKey(r) == "" || Open(path) || path == PathLogout {
		return ctx, func() {}, nil
	}
	key := keyOf(cookieOf(r))
	ctx, cancel := context.WithCancelCause(ctx)
	q := a.live.add(key.holder(), cancel)
	one, ok := a.sessions.find(key) // only now: what ends it from here on, ends the request
	ctx, stop := context.WithDeadlineCause(ctx, one.ends, sessionEnded())
	release = func() {
		stop()
		a.live.remove(q)
		cancel(nil)
	}
	if !ok {
		release()
		return nil, nil, sessionEnded()
	}
	return ctx, release, nil
}

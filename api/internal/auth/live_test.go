package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node/access"
)

// fakeTokens knows one token.
type fakeTokens struct {
	token access.Token
	err   error
}

func (f *fakeTokens) byID(string) (access.Token, error) {
	if f.err == nil && !f.token.Expires.IsZero() && !time.Now().Before(f.token.Expires) {
		return access.Token{}, access.ErrExpired
	}
	return f.token, f.err
}

func hold(t *testing.T, l *live) (context.Context, func()) {
	t.Helper()
	ctx, release, err := l.hold(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return ctx, release
}

// endedFor reports whether a request has ended with a 401 that says so.
func endedFor(ctx context.Context, why error) bool {
	var p *problem.Problem
	return errors.As(problem.Ended(ctx), &p) && p.Status == 401 && strings.HasPrefix(p.Detail, why.Error())
}

// A request ends in the moment in which its token expires, also if that is days away and the timer is asked again.
func TestRequestsEndWhenTheirTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life = 49*time.Hour + time.Millisecond
		f := &fakeTokens{token: access.Token{ID: "a", Expires: time.Now().Add(life)}}
		l := newLive(f.byID)
		first, release := hold(t, l)
		<-time.After(time.Hour)
		second, release2 := hold(t, l)
		<-time.After(life - time.Hour - 1)
		if first.Err() != nil || second.Err() != nil {
			t.Fatal("ended too early")
		}
		<-time.After(1)
		synctest.Wait()
		if !endedFor(first, access.ErrExpired) || !endedFor(second, access.ErrExpired) {
			t.Errorf("%v, %v", context.Cause(first), context.Cause(second))
		}
		release()
		release2()
		if _, _, err := l.hold(t.Context(), "a"); err == nil || len(l.tokens) != 0 {
			t.Errorf("afterwards: %v, %d tokens", err, len(l.tokens))
		}
	})
}

func TestRequestsEndWhenTheirTokenIsRevoked(t *testing.T) {
	f := &fakeTokens{token: access.Token{ID: "a"}}
	l := newLive(f.byID)
	before, gone := hold(t, l)
	gone()
	if before.Err() == nil || problem.Ended(before) != nil {
		t.Errorf("one that was answered: %v", context.Cause(before))
	}
	ctx, release := hold(t, l)
	f.err = access.ErrUnknown
	l.check("a")
	if !endedFor(ctx, access.ErrUnknown) {
		t.Errorf("%v", context.Cause(ctx))
	}
	release()
	// Revoked after it was found, and before the request was noted.
	if _, _, err := l.hold(t.Context(), "a"); err == nil {
		t.Error("a revoked token is held")
	}
	if len(l.tokens) != 0 {
		t.Errorf("%d tokens are kept without requests", len(l.tokens))
	}
}

// Nothing is kept of requests that were answered.
func TestHeldRequestsAreForgotten(t *testing.T) {
	l := newLive((&fakeTokens{token: access.Token{ID: "a", Expires: time.Now().Add(time.Hour)}}).byID)
	var releases []func()
	for range 100 {
		_, release := hold(t, l)
		releases = append(releases, release)
	}
	if n := len(l.tokens["a"].requests); n != 100 {
		t.Errorf("%d requests", n)
	}
	for _, release := range releases {
		release()
		release() // twice is once
	}
	if len(l.tokens) != 0 {
		t.Errorf("%d tokens", len(l.tokens))
	}
}

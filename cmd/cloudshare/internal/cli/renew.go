package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/cloudshare/cloudshare/api/client"
)

// renewBefore is how long before the end of a token another one is asked for: a request takes a while.
const renewBefore = time.Minute

// serves reports whether the token of a login may be sent, after the broker has refused one.
func (l Login) serves(refused string) bool {
	return time.Until(l.Expires) > renewBefore && l.IDToken != refused
}

// renewal is the source of a client's tokens: those of the login at an address, for as long as it goes on.
type renewal struct {
	contexts Contexts
	at       string

	mu    sync.Mutex
	login Login // the latest; guarded by mu
}

// token is a client.TokenSource.
func (r *renewal) token(refused string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.contexts.renewed(r.at, r.login, refused)
	if err != nil {
		return "", err
	}
	r.login = l
	return l.IDToken, nil
}

// renewed returns a login whose token may be sent: the one that is kept, or the next one.
func (c Contexts) renewed(at string, l Login, refused string) (Login, error) {
	if l.serves(refused) {
		return l, nil
	}
	// Under the lock of the file: many providers take a refresh token once.
	err := c.change(func(f *contextsFile) error {
		if f.Contexts[at].Login == nil {
			return fmt.Errorf("the login at %s has ended: cloudshare login", at)
		}
		if l = *f.Contexts[at].Login; l.serves(refused) {
			return nil // another process was first
		}
		next, err := l.renew()
		if err == nil {
			l = next
			f.put(at, f.Contexts[at].with(&l))
		}
		return err
	})
	if err != nil && (time.Until(l.Expires) <= 0 || l.IDToken == refused) {
		return Login{}, WithExit(ExitRefused, err)
	}
	return l, nil
}

// renew asks the provider for another token. It is not interrupted: the refresh token that it takes would be lost.
func (l Login) renew() (Login, error) {
	if l.Refresh == "" {
		return l, fmt.Errorf("the login at %s has ended: cloudshare login", l.Issuer)
	}
	ctx, cancel := context.WithTimeout(context.Background(), providerTimeout)
	defer cancel()
	ctx, provider, err := l.Provider(ctx)
	if err != nil {
		return l, fmt.Errorf("%w: %w", client.ErrTokenAway, err)
	}
	t, err := provider.TokenSource(ctx, &oauth2.Token{RefreshToken: l.Refresh}).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < 500:
		return l, fmt.Errorf("the login at %s has ended (%.80s): cloudshare login", l.Issuer, refused.ErrorCode)
	case err != nil:
		return l, fmt.Errorf("%w: renew the login at %s: %w", client.ErrTokenAway, l.Issuer, err)
	}
	return l.With(t)
}

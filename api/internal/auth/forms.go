package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"net/http"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// FormKey returns what the forms of a session's pages carry, so that no other page can send them, "" for a request that
// comes without a session. It tells nothing of the session's cookie, which is as long and random.
func (a *Auth) FormKey(r *http.Request) string {
	id := cookieOf(r)
	if !a.On() || id == "" || r.Header.Values("Authorization") != nil {
		return ""
	}
	sum := sha256.Sum256([]byte("form of " + id))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])
}

// Genuine reports whether a form that brings such a key was drawn for the session that sends it. What brings a token in
// its header was sent by no form.
func (a *Auth) Genuine(r *http.Request, key string) bool {
	want := a.FormKey(r)
	return want == "" || subtle.ConstantTimeCompare([]byte(want), []byte(key)) == 1
}

// Holder returns the token by which an admitted request was sent; without one, that of the site's operator.
func (a *Auth) Holder(r *http.Request) (access.Token, error) {
	if who := node.AskerOf(r.Context()); !a.On() || who.Operator && who.Token == "" {
		return access.Token{Role: access.Operator, User: who.User}, nil
	}
	return a.holder(r)
}

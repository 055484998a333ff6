package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// holders says who has tokens of the site; nil: there are none.
type holders interface {
	// List returns all tokens, also expired ones.
	List() []access.Token
}

// unknown returns a warning if nothing at this site has the name of a user yet, which may be mistyped. It is no error:
// users of an identity provider are known once they submit.
func (f *federation) unknown(ctx context.Context, user string) (warning string, err error) {
	named := func(t access.Token) bool { return t.User == user }
	if user == node.EveryUser || f.tokens != nil && slices.ContainsFunc(f.tokens.List(), named) {
		return "", nil
	}
	used, err := f.broker.Users(ctx)
	if err != nil || slices.ContainsFunc(used, func(u node.UserUse) bool { return u.User == user }) {
		return "", err
	}
	return fmt.Sprintf("no token, quota or job at this site has the user %s yet: check the name, "+
		"unless the user is to come (a login at an identity provider is not known before its first job)", user), nil
}

package cli

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/openid"
)

// check refuses an ID token that is not of the login's provider for the login's client. Who signed it is the broker's
// to judge: the token came from the provider itself, by TLS.
func (l Login) check(c openid.Said) error {
	switch {
	case c.Issuer != l.Issuer:
		return fmt.Errorf("the ID token is of issuer %.200q, not of %s: nothing is sent to the broker; ask its operator", c.Issuer, l.Issuer)
	case !slices.Contains(c.Audience, l.Client):
		return fmt.Errorf("the ID token is for %.200q, not for client %.80q: nothing is sent to the broker; ask its operator", c.Audience, l.Client)
	}
	return nil
}

func (l Login) sameClient(as Login) bool { return l.Issuer == as.Issuer && l.Client == as.Client }

// CheckLogin refuses a login at an address that is bound to another provider or client by its last login, and, unless
// they are shared, a provider and client to which another address is bound: its broker could have the user confirm a
// login whose tokens count there.
func (c Contexts) CheckLogin(addr string, l Login, shared bool) error {
	f, err := c.read()
	if err != nil {
		return err
	}
	at := f.at(addr)
	if was := f.Contexts[at].Login; was != nil {
		if was.sameClient(l) {
			return nil
		}
		return WithExit(ExitRefused, fmt.Errorf("%s now names client %.80q of %s to log in, before client %.80q of %s: if its operator says so, cloudshare logout first",
			at, l.Client, l.Issuer, was.Client, was.Issuer))
	}
	for other, known := range f.Contexts {
		if other != at && !shared && known.Login != nil && known.Login.sameClient(l) {
			return WithExit(ExitRefused, fmt.Errorf("%s names client %.80q of %s, by which you are logged in at %s: its tokens would count there, too; if one operator has both, use --shared-client",
				at, l.Client, l.Issuer, other))
		}
	}
	return nil
}

package daemon

import (
	"io"

	"github.com/cloudshare/cloudshare/api"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/openid"
)

// closingAccess is closed once nobody asks any more.
type closingAccess interface {
	api.Access
	io.Closer
}

// openTokens opens the broker's own tokens, and takes those of the configured provider beside them. It does not ask the
// provider: one that is away must not keep a broker from starting. With a pin, the texts of its own tokens name the
// key by which clients trust the broker.
func openTokens(cfg config.Config, pin *access.Pin) (closingAccess, error) {
	own, err := access.OpenIn(cfg.DataDir)
	if err == nil {
		err = own.PinIn(cfg.DataDir, pin)
	}
	if err != nil || cfg.OIDC.Issuer == "" {
		return own, err
	}
	return openid.New(cfg.ForOpenID(), own), nil
}

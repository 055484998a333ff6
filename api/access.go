package api

import (
	"context"

	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/api/internal/tokens"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// Access says whose a token is, and keeps them: an *access.Store, alone or with the tokens of an identity provider
// beside it (package openid).
type Access interface {
	auth.Tokens
	tokens.Store
}

var _ Access = (*access.Store)(nil)

// Rates are how much may be asked in a second, by address and by user.
type Rates = auth.Rates

// DefaultRates are far above what people and scripts ask, and below what takes a core of the broker.
var DefaultRates = Rates{WrongTokens: 10, Anonymous: 1000, User: 2000, Connections: 200}

// sharer names whom a request counts for.
func sharer(ctx context.Context) string { return auth.Sharer(node.AskerOf(ctx)) }

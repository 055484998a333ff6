package api

import (
	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/api/internal/tokens"
	"github.com/cloudshare/cloudshare/node/access"
)

// Access says whose a token is, and keeps them: an *access.Store, alone or with the tokens of an identity provider
// beside it (package openid).
type Access interface {
	auth.Tokens
	tokens.Store
}

var _ Access = (*access.Store)(nil)

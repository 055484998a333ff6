package api

import (
	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/node/access"
)

// Access says whose a token is: an *access.Store.
type Access interface{ auth.Tokens }

var _ Access = (*access.Store)(nil)

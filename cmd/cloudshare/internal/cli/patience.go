package cli

import (
	"errors"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
)

// Patience is how long a broker may be away while something of it is waited for:
// it may be restarting.
const Patience = 30 * time.Second

// IsPassing reports an error that a restart, a new leader or the answer of an identity provider ends.
func IsPassing(err error) bool {
	var p *client.Problem
	return errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrTokenAway) ||
		errors.As(err, &p) && (p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests)
}

package api

import "github.com/cloudshare/cloudshare/api/internal/transport"

// reads hold back what a client does not want to read yet, and say how old the state
// is that the others are shown.
type reads struct {
	broker  Feed
	waiters *transport.Places
	stop    *transport.Stop
}

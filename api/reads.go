package api

import (
	"context"

	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
)

// reads hold back what a client does not want to read yet, and say how old the state
// is that the others are shown.
type reads struct {
	broker  shown
	waiters *transport.Places
	stop    *transport.Stop
}

// shown is what reads need of a broker.
type shown interface {
	source.State
	source.Feed
	Confirm(ctx context.Context) error
}

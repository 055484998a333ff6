package broker

import (
	"context"

	"github.com/cloudshare/cloudshare/node/coord/transfer"
)

// Transfers bring blobs from the brokers of other sites; a *transfer.Client is one.
type Transfers interface {
	Pull(ctx context.Context, site, addr string, index uint64, b transfer.Blob, to transfer.Sink) error
	PullBatch(ctx context.Context, site, addr string, index uint64, blobs []transfer.Blob,
		take func(i int, content []byte, refused error) error) error
}

var _ Transfers = (*transfer.Client)(nil)

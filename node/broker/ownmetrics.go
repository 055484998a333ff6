package broker

import (
	"context"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
)

// countedTransfers count what comes.
type countedTransfers struct {
	of    transfer.Puller
	bytes atomic.Int64
}

var _ transfer.Puller = (*countedTransfers)(nil)

// Pull implements transfer.Puller.
func (c *countedTransfers) Pull(ctx context.Context, site, addr string, index uint64, b transfer.Blob,
	to transfer.Sink,
) error {
	if c.of == nil {
		return transfer.ErrUnreachable
	}
	return c.of.Pull(ctx, site, addr, index, b, cameSink{to, &c.bytes})
}

// PullBatch implements transfer.Puller.
func (c *countedTransfers) PullBatch(ctx context.Context, site, addr string, index uint64, blobs []transfer.Blob,
	take func(i int, content []byte, refused error) error,
) error {
	if c.of == nil {
		return transfer.ErrUnreachable
	}
	return c.of.PullBatch(ctx, site, addr, index, blobs, func(i int, content []byte, refused error) error {
		c.bytes.Add(int64(len(content)))
		return take(i, content, refused)
	})
}

// cameSink counts what comes, whether or not it is kept: see transfer.Counted for the other count.
type cameSink struct {
	transfer.Sink
	bytes *atomic.Int64
}

// WritePiece implements transfer.Sink.
func (s cameSink) WritePiece(i int, b []byte) error {
	s.bytes.Add(int64(len(b)))
	return s.Sink.WritePiece(i, b)
}

// metrics returns the figures of files, zeros if this broker keeps none.
func (k *ownFiles) metrics() (m node.FileFigures) {
	if k == nil {
		return m
	}
	s := k.delivery.Stats()
	return node.FileFigures{
		InBytes: k.b.moved.bytes.Load(), OutBytes: k.sent.Load(), Delivering: s.Waiting, OldestMs: s.OldestMs,
		NoRoom: s.Full, Spaces: k.b.FilesUse(),
	}
}

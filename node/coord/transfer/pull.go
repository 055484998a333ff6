package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

const (
	// turn is how many requests a link has answered before it goes to another pull that waits for one.
	turn = 8
	// window is how many requests are under way on a link besides the one whose answer comes.
	window = 1
)

// Sink is where a blob is put together. WritePiece is called for each of the missing pieces once, by several at a time;
// it must not keep b.
type Sink interface {
	Size() int64
	Missing() []int // which pieces of PieceBytes, from 0; an empty blob has none
	WritePiece(i int, b []byte) error
}

// Pull brings the missing pieces of a blob from a site's broker at an address; index is the entry of this site's state.
// It goes on behind a connection that breaks as long as pieces come; after ErrUnreachable or ErrStalled what came stays
// in the sink. The error is one of those of this package, or ctx's.
func (c *Client) Pull(ctx context.Context, site, addr string, index uint64, b Blob, to Sink) error {
	missing, err := c.missing(b, to)
	if err != nil {
		return err
	}
	return c.run(ctx, address{site, addr}, &pull{
		index: index,
		queue: queue{left: missing, bytes: c.piece, part: func(i int) Request {
			at := int64(i) * c.piece
			return Request{Blob: b, Index: index, Offset: at, Length: min(c.piece, b.Size-at)}
		}},
		deliver: func(i int, content []byte, refused error) error {
			if refused != nil {
				return refused
			}
			if err := to.WritePiece(i, content); err != nil {
				return fmt.Errorf("%w: piece %d of blob %x: %w", ErrSink, i, b.Hash, err)
			}
			return nil
		},
	})
}

// missing returns which pieces are to be pulled.
func (c *Client) missing(b Blob, to Sink) ([]int, error) {
	if to.Size() != b.Size || b.Size < 0 || b.Size > MaxBlobBytes {
		return nil, fmt.Errorf("%w: a blob of %d bytes in a place for %d", ErrSink, b.Size, to.Size())
	}
	missing := to.Missing()
	for _, i := range missing {
		if i < 0 || int64(i)*c.piece >= b.Size { // no piece of an empty blob is missing
			return nil, fmt.Errorf("%w: piece %d of a blob of %d bytes", ErrSink, i, b.Size)
		}
	}
	return missing, nil
}

// PullBatch brings many whole blobs of at most PieceBytes each, with few round trips. take is called once for each, by
// several at a time, with its content, which take must not keep, or with a *RefusedError; what take returns ends the
// pull. After ErrUnreachable or ErrStalled take was not called for those that are left.
func (c *Client) PullBatch(ctx context.Context, site, addr string, index uint64, blobs []Blob,
	take func(i int, content []byte, refused error) error,
) error {
	var left []int
	for i := range blobs {
		switch n := blobs[i].Size; {
		case n < 0 || n > PieceBytes:
			return fmt.Errorf("%w: a blob of %d bytes in a batch, the limit is %d", ErrSink, n, PieceBytes)
		case n > 0:
			left = append(left, i)
			continue
		}
		if err := take(i, nil, nil); err != nil {
			return err
		}
	}
	return c.run(ctx, address{site, addr}, &pull{
		index: index, deliver: take,
		queue: queue{left: left, bytes: c.piece, part: func(i int) Request {
			return Request{Blob: blobs[i], Index: index, Length: blobs[i].Size}
		}},
	})
}

// pull is one Pull or PullBatch.
type pull struct {
	index   uint64
	queue   queue
	deliver func(i int, content []byte, refused error) error
	from    *peer
	meter   meter
	helpers sync.WaitGroup          // links besides the first
	fail    context.CancelCauseFunc // ends it

	mu   sync.Mutex
	lost error // why a link has ended that was not replaced
}

// run pulls, until nothing is left to be asked for.
func (c *Client) run(ctx context.Context, from address, p *pull) error {
	if p.queue.empty() {
		return nil
	}
	p.from = c.join(from)
	defer c.leave(p.from)
	ctx, cancel := context.WithCancelCause(ctx)
	p.fail = cancel
	var wg sync.WaitGroup
	wg.Go(func() { p.meter.watch(ctx, func() { cancel(ErrStalled) }) })
	p.work(ctx)
	p.helpers.Wait()
	err := context.Cause(ctx)
	cancel(nil)
	wg.Wait()
	switch {
	case err == nil && !p.queue.empty():
		err = p.lost
	case err == nil:
		return nil
	}
	return fmt.Errorf("pull from site %s: %w", from.site, err)
}

// work has links used until nothing is left, or none can be used.
func (p *pull) work(ctx context.Context) {
	for more := true; more && !p.queue.empty() && p.from.acquire(ctx) == nil; {
		p.meter.links.Add(1)
		p.grow(ctx)
		more = p.useLink(ctx)
	}
}

// grow has more links used, as far as that is of use and nobody else is in want of them.
func (p *pull) grow(ctx context.Context) {
	for int(p.meter.links.Load()) < p.queue.links() && p.from.tryAcquire() {
		p.meter.links.Add(1)
		p.helpers.Go(func() { p.useLink(ctx) })
	}
}

// useLink has requests answered until none is left, or others wait for the link; false: no link can be used, or the
// pull has failed. It replaces a link that breaks if that has brought something, or was an old one.
//
// REQUIRES: the right to use a link was acquired, and meter counts it.
func (p *pull) useLink(ctx context.Context) bool {
	defer func() {
		p.meter.links.Add(-1)
		p.from.release()
	}()
	for {
		l, err := p.from.link(ctx)
		brought, old := 0, l != nil && l.kept
		if err == nil {
			brought, err = p.exchange(ctx, l)
		}
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case final(err):
			p.fail(err)
			return false
		case brought == 0 && !old:
			p.setLost(err)
			return false
		}
	}
}

// final reports whether an error ends a pull whatever other links do.
func final(err error) bool { return !errors.Is(err, ErrUnreachable) }

func (p *pull) setLost(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost == nil {
		p.lost = err
	}
}

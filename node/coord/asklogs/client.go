package asklogs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

const (
	// answerWithin is how long the next frame of an answer may take to come.
	answerWithin = time.Minute
	// One attempt's output has attemptWithin to come, and a byte of it, in addition, the time it takes at leastRate.
	attemptWithin = 2 * time.Minute
	leastRate     = 64 << 10 // bytes a second
)

// Errors of questions, besides the context's. The first of them goes by itself.
var (
	// ErrUnreachable reports that the other site's broker cannot be reached, or has gone in the middle.
	ErrUnreachable = errors.New("its broker cannot be reached")
	// ErrPeer reports that it does not follow the protocol.
	ErrPeer = errors.New("its broker does not answer as it must: it is faulty, or hostile")
)

// Taker takes answers, in the order of the question.
type Taker interface {
	// Piece takes more of a stream (0 is stdout) of the i-th attempt, which it must not keep.
	Piece(i, stream int, b []byte) error
	// Done ends the i-th attempt: its output is whole, or there is none.
	Done(i int, d Done) error
}

// Conn is a connection to a site's broker, on which one question is asked after the other.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
	buf  []byte
}

// NewConn takes a connection of relay.KindLogs over.
func NewConn(conn net.Conn) *Conn { return &Conn{conn: conn, in: bufio.NewReaderSize(conn, maxPiece)} }

// Close ends it.
func (c *Conn) Close() { _ = c.conn.Close() }

// Ask asks, and returns when all is answered, or to has returned an error. After an error no more can be asked.
func (c *Conn) Ask(ctx context.Context, q Question, to Taker) error {
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })()
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerWithin))
	_, err := c.conn.Write(relay.EndFrame(q.append(relay.Frame(nil))))
	if err != nil {
		return c.broken(ctx, err)
	}
	for i := range q.Refs {
		if err = c.receive(ctx, i, q.Most, to); err != nil {
			return err
		}
	}
	if c.in.Buffered() > 0 {
		return fmt.Errorf("%w: %d bytes that were not asked for", ErrPeer, c.in.Buffered())
	}
	return nil
}

// receive takes the answer about one attempt.
func (c *Conn) receive(ctx context.Context, i int, most int64, to Taker) error {
	began, size := time.Now(), [2]int64{}
	for {
		slowest := began.Add(attemptWithin + time.Duration((size[0]+size[1])/leastRate)*time.Second)
		within := time.Now().Add(answerWithin)
		if slowest.Before(within) {
			within = slowest
		}
		_ = c.conn.SetReadDeadline(within)
		if ctx.Err() != nil { // its deadline may have been overwritten
			return context.Cause(ctx)
		}
		b, err := relay.ReadFrame(c.in, c.buf, maxFrame)
		if err != nil {
			return c.broken(ctx, err)
		}
		c.buf = b
		p, err := parsePart(b)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPeer, err)
		}
		for n, piece := range p.streams {
			if size[n] += int64(len(piece)); size[n] > most {
				return fmt.Errorf("%w: a stream is longer than the %d bytes that were asked for", ErrPeer, most)
			}
			if len(piece) > 0 {
				if err = to.Piece(i, n, piece); err != nil {
					return err
				}
			}
		}
		if p.ends {
			return to.Done(i, p.Done)
		}
	}
}

// broken words why a connection is of no use any more.
func (c *Conn) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: it went, or was too slow, in the middle of an answer: %w", ErrUnreachable, err)
}

package compare

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// maxServed bounds the questions that are answered at a time: a member that is
// asked more often closes the connection, and is asked again.
const maxServed = 64

// Serve answers a connection of relay.KindCompare. What the dialer says of itself
// has no effect.
func (c *Checker) Serve(conn net.Conn, _ relay.Preamble) {
	defer conn.Close()
	select {
	case c.serving <- struct{}{}:
		defer func() { <-c.serving }()
	default:
		return
	}
	_ = conn.SetDeadline(time.Now().Add(c.cfg.Timeout))
	q, err := relay.ReadFrame(conn, nil, maxQuestion)
	switch {
	case err != nil:
	case len(q) == 1 && q[0] == questionOwn:
		_, _ = conn.Write(relay.EndFrame(appendStatements(relay.Frame(nil), c.statements()))) // it may have gone
		return
	case len(q) > 1 && q[0] == questionHeard:
		if from, ok := heardFrom(q); ok {
			_, _ = conn.Write(relay.EndFrame(appendStatements(relay.Frame(nil), c.heard(from))))
			return
		}
		err = fmt.Errorf("compare: %w", errAnswer)
	case len(q) == 1 && q[0] == questionState:
		c.serveState(conn)
		return
	default:
		err = fmt.Errorf("compare: unknown question of %d bytes", len(q))
	}
	c.cfg.Refuse(conn, err)
}

// serveState sends a state, one at a time.
func (c *Checker) serveState(conn net.Conn) {
	if !c.sending.TryLock() {
		return
	}
	defer c.sending.Unlock()
	entry, state := c.cfg.Machine.Held()
	defer state.Release()
	w := chunkWriter{conn, c.cfg.Timeout, time.Now().Add(evidenceTime)}
	if _, err := conn.Write(relay.EndFrame(head{c.cfg.Site, entry}.append(relay.Frame(nil)))); err != nil {
		return
	}
	if err := state.Write(w); err != nil {
		c.cfg.Log.Debug().Err(err).Msg("state not sent")
		return
	}
	_, _ = conn.Write(relay.Frame(nil)) // nothing follows
}

// chunkWriter writes frames; each has as long as patience, all of them until then.
type chunkWriter struct {
	conn     net.Conn
	patience time.Duration
	until    time.Time
}

// Write implements io.Writer.
func (w chunkWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		part := b[n:min(len(b), n+chunkBytes)]
		at := time.Now().Add(w.patience)
		if at.After(w.until) {
			at = w.until
		}
		_ = w.conn.SetDeadline(at)
		if _, err := w.conn.Write(relay.EndFrame(append(relay.Frame(nil), part...))); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// chunkReader reads what chunkWriter wrote, up to the empty frame and at most left
// bytes.
type chunkReader struct {
	conn     net.Conn
	patience time.Duration
	left     int64
	rest     []byte
	ended    bool
}

// Read implements io.Reader.
func (r *chunkReader) Read(b []byte) (int, error) {
	if r.ended {
		return 0, io.EOF
	}
	if len(r.rest) == 0 {
		_ = r.conn.SetDeadline(time.Now().Add(r.patience))
		var err error
		if r.rest, err = relay.ReadFrame(r.conn, nil, chunkBytes); err != nil {
			return 0, fmt.Errorf("read state: %w", err)
		}
		if r.ended = len(r.rest) == 0; r.ended {
			return 0, io.EOF
		}
		if r.left -= int64(len(r.rest)); r.left < 0 {
			return 0, fmt.Errorf("%w: the state is larger than was to be expected", errAnswer)
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

var _ coord.Comparing = (*Checker)(nil)

package transfer

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/time/rate"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

const (
	// idle is for how long a connection may be silent.
	idle = 90 * time.Second
	// patience is how long a request may wait for the state.
	patience = 2 * time.Second
	// takeWithin is how long the asker has to take what a Write of a chunk holds.
	takeWithin = stallAfter

	// refusedRate is how many parts of a connection are refused a second, behind the first refusedBurst.
	refusedRate, refusedBurst = 256, 1024

	// leastCharge is what a part counts at least, in bytes: opening a file costs about as much as sending them.
	leastCharge = 4 << 10
)

// Source is a blob that is read from. Close is called once.
type Source interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Server gives other sites parts of blobs. It holds half a MiB for each connection on which a request is answered;
// how many a site may have is relay's to say.
type Server struct {
	// Answer says what the site from gets: a source, which is closed when the part was sent, or why not. A nil source
	// is a refusal. It may wait for the state to be as new as the asker's, as long as ctx lasts; having said Behind, it
	// is not asked for the other parts of that request. It is called for each part, by many at a time.
	Answer func(ctx context.Context, from string, q Request) (Source, Refusal)
	// Limit bounds what is sent to all, in bytes a second before compression; nil: nothing does. It is one of NewLimit.
	Limit *rate.Limiter
}

// NewLimit returns a limit that Server can use.
func NewLimit(bytesPerSecond int64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(bytesPerSecond), chunkBytes)
}

// Serve answers a connection of relay.KindFiles until that or ctx ends, or the asker says nonsense. Who waits for Limit
// does not notice that its connection has ended, so ctx should end before the peer port is closed, which waits for it.
func (s *Server) Serve(ctx context.Context, conn net.Conn, p relay.Preamble) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	x := &session{
		Server: s, conn: conn, from: p.Site, in: bufio.NewReaderSize(conn, 4<<10),
		refused: rate.NewLimiter(refusedRate, refusedBurst),
	}
	for ctx.Err() == nil {
		if x.serve(ctx) != nil {
			return
		}
	}
}

// session is one connection.
type session struct {
	*Server
	conn    net.Conn
	from    string
	in      *bufio.Reader
	request []byte
	parser  parser
	refused *rate.Limiter
	shrinking
}

// serve answers the next request.
func (x *session) serve(ctx context.Context) error {
	_ = x.conn.SetReadDeadline(time.Now().Add(idle))
	var err error
	if x.request, err = readRequest(x.in, x.request); err != nil {
		return err
	}
	parts, err := x.parser.parse(x.request)
	if err != nil {
		return err
	}
	out := takeOutgoing(x.conn, &x.shrinking)
	defer out.free()
	waiting, cancel := context.WithTimeout(ctx, patience)
	source, refusal := x.ask(waiting, &parts[0])
	cancel()
	for i := range parts {
		if i > 0 && refusal != Behind { // all are of one entry, so that one wait is enough
			source, refusal = x.ask(ctx, &parts[i])
		}
		if err = x.answer(ctx, out, &parts[i], source, refusal); err != nil {
			return err
		}
	}
	return out.flush()
}

// ask returns a source, or why there is none.
func (x *session) ask(ctx context.Context, q *Request) (Source, Refusal) {
	source, refusal := x.Answer(ctx, x.from, *q)
	switch {
	case source == nil && refusal == Granted:
		return nil, NotAllowed
	case source == nil:
		return nil, refusal
	case refusal == Granted && source.Size() != q.Size:
		refusal = NotHere
	}
	if refusal != Granted {
		_ = source.Close()
	}
	return source, refusal
}

// answer sends a part, or refuses it.
func (x *session) answer(ctx context.Context, out *outgoing, q *Request, source Source, refusal Refusal) error {
	if refusal == Granted {
		defer source.Close()
		return x.send(ctx, out, source, q)
	}
	if !x.refused.Allow() {
		if err := out.flush(); err != nil {
			return err
		}
		if err := x.refused.Wait(ctx); err != nil {
			return err
		}
	}
	return out.refuse(refusal)
}

// send sends a part, chunk by chunk.
func (x *session) send(ctx context.Context, out *outgoing, from Source, q *Request) error {
	for sent := int64(0); sent < q.Length; {
		n := min(chunkBytes, q.Length-sent)
		if err := x.pay(ctx, out, max(n, leastCharge)); err != nil {
			return err
		}
		ok, err := out.chunk(from, &q.Hash, q.Offset+sent, int(n))
		if err != nil || !ok {
			return err
		}
		sent += n
	}
	return nil
}

// pay waits until n bytes more may be sent.
func (x *session) pay(ctx context.Context, out *outgoing, n int64) error {
	if x.Limit == nil || x.Limit.AllowN(time.Now(), int(n)) {
		return nil
	}
	if err := out.flush(); err != nil {
		return err
	}
	return x.Limit.WaitN(ctx, int(n))
}

// readRequest reads a request's frame into buf.
func readRequest(in *bufio.Reader, buf []byte) ([]byte, error) {
	head, err := in.Peek(4)
	if err != nil {
		return buf, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > maxRequest {
		return buf, fmt.Errorf("%w: %d bytes", errWire, n)
	}
	_, _ = in.Discard(4)
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	_, err = io.ReadFull(in, buf[:n])
	return buf[:n], err
}

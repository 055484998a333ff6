package transfer

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// link is a connection to another site's broker, as its asker has it.
type link struct {
	net.Conn
	in    *bufio.Reader
	kept  bool // it was used before, so that it may have ended meanwhile
	since time.Time
	out   []byte // the last request
}

func newLink(conn net.Conn) *link {
	return &link{Conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}
}

// interruptBy has reads and writes fail once ctx ends. The returned function undoes that, and reports whether ctx had
// not ended yet.
func (l *link) interruptBy(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, l.interrupt)
}

func (l *link) interrupt() { _ = l.SetDeadline(time.Unix(1, 0)) }

func (l *link) ask(index uint64, parts []Request) error {
	l.out = relay.EndFrame(appendRequest(relay.Frame(l.out[:0]), index, parts))
	_, err := l.Write(l.out)
	return err
}

// buffers for pieces and chunks.
var (
	pieceBuffers = sync.Pool{New: func() any { return new([PieceBytes]byte) }}
	chunkBuffers = sync.Pool{New: func() any { return new([chunkBytes]byte) }}
)

// takeBuffer returns a buffer of n bytes, and what gives it back.
func takeBuffer(n int64) (b []byte, free func()) {
	if n <= chunkBytes {
		a := chunkBuffers.Get().(*[chunkBytes]byte)
		return a[:n], func() { chunkBuffers.Put(a) }
	}
	a := pieceBuffers.Get().(*[PieceBytes]byte)
	return a[:n], func() { pieceBuffers.Put(a) }
}

// readPart fills b with a part, or returns why it is refused; arrived is told how many bytes of b have come. Errors are
// those of the connection, or ErrPeer.
func (l *link) readPart(b []byte, arrived func(int)) (Refusal, error) {
	for at := 0; at < len(b); {
		want := min(chunkBytes, len(b)-at)
		refusal, err := l.readChunk(b[at : at+want])
		if refusal != Granted || err != nil {
			return refusal, err
		}
		arrived(want)
		at += want
	}
	return Granted, nil
}

// readChunk reads one frame.
func (l *link) readChunk(b []byte) (Refusal, error) {
	head, err := l.in.Peek(headBytes)
	if err != nil {
		return Granted, err
	}
	n, code := int64(binary.BigEndian.Uint32(head))-1, head[headBytes-1]
	_, _ = l.in.Discard(headBytes)
	switch {
	case code == codeRaw && n == int64(len(b)):
		_, err = io.ReadFull(l.in, b)
		return Granted, err
	case code == codeZstd && n > 0 && n < int64(len(b)):
		return Granted, l.readShrunk(b, n)
	case code == codeRefused && n == 1:
		r, err := l.in.ReadByte()
		if err == nil && Refusal(r) == Granted {
			err = fmt.Errorf("%w: refusal 0", ErrPeer)
		}
		return Refusal(r), err
	}
	return Granted, fmt.Errorf("%w: frame of kind %d with %d bytes for a chunk of %d", ErrPeer, code, n, len(b))
}

// readShrunk reads n bytes, which fill b decompressed.
func (l *link) readShrunk(b []byte, n int64) error {
	shrunk, free := takeBuffer(n)
	defer free()
	if _, err := io.ReadFull(l.in, shrunk); err != nil {
		return err
	}
	return decompress(b, shrunk)
}

package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// Frames of an answer: u32 length · code · body.
const (
	codeRaw     = 0 // a chunk
	codeZstd    = 1 // a chunk, one frame of zstd
	codeRefused = 2 // a Refusal

	headBytes = 4 + 1
	// flushAt is how many bytes are worth a Write.
	flushAt = 64 << 10
)

// outgoing gathers frames, so that small ones share a Write.
type outgoing struct {
	conn      net.Conn
	shrinking *shrinking
	b         []byte // Invariant: cap is that of a frame of a whole chunk, and flushAt.
	shrunk    []byte // where chunks are compressed
}

var outgoings = sync.Pool{New: func() any {
	return &outgoing{b: make([]byte, 0, headBytes+chunkBytes+flushAt), shrunk: make([]byte, 0, chunkBytes+chunkBytes/8)}
}}

func takeOutgoing(conn net.Conn, s *shrinking) *outgoing {
	o := outgoings.Get().(*outgoing)
	o.conn, o.shrinking, o.b = conn, s, o.b[:0]
	return o
}

func (o *outgoing) free() {
	o.conn, o.shrinking = nil, nil
	outgoings.Put(o)
}

// chunk adds n bytes of a source, compressed if that is worth it. ok is false if they cannot be read, which ends the
// part.
func (o *outgoing) chunk(from Source, hash *[sha256.Size]byte, offset int64, n int) (ok bool, err error) {
	at := len(o.b)
	frame := o.b[at : at+headBytes+n]
	body := frame[headBytes:]
	if got, _ := from.ReadAt(body, offset); got < n {
		return false, o.refuse(Failed)
	}
	code, length := byte(codeRaw), n
	if n >= leastCompressed && o.shrinking.tries(hash) {
		began := time.Now()
		if shrunk := compress(o.shrunk, body); o.shrinking.judge(n, len(shrunk), time.Since(began)) {
			code, length = codeZstd, copy(body, shrunk)
		}
	}
	return true, o.add(code, length)
}

// refuse adds a refusal.
func (o *outgoing) refuse(r Refusal) error {
	o.b[:len(o.b)+headBytes+1][len(o.b)+headBytes] = byte(r)
	return o.add(codeRefused, 1)
}

// add adds a frame whose body of n bytes stands at its place, and writes what is worth it.
func (o *outgoing) add(code byte, n int) error {
	at := len(o.b)
	o.b = o.b[:at+headBytes+n]
	binary.BigEndian.PutUint32(o.b[at:], uint32(n+1))
	o.b[at+headBytes-1] = code
	if len(o.b) < flushAt {
		return nil
	}
	return o.flush()
}

// flush writes what there is.
func (o *outgoing) flush() error {
	if len(o.b) == 0 {
		return nil
	}
	began := time.Now()
	_ = o.conn.SetWriteDeadline(began.Add(takeWithin))
	_, err := o.conn.Write(o.b)
	o.shrinking.sent(len(o.b), time.Since(began))
	o.b = o.b[:0]
	return err
}

package relay

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// freeFrame is how many bytes of a frame under way no budget counts: nearly all
// frames are smaller, and must not wait for those that strangers send slowly.
const freeFrame = 64 << 10

// frameReader reads the frames of a connection whose other end nobody vouches for: a
// connection may be idle as long as it likes, but a frame once begun must arrive
// within a time, and the bytes of a large one are counted before they come: all at
// once, or frames that have arrived in part would wait for each other.
type frameReader struct {
	conn    net.Conn
	r       *bufio.Reader
	reading share
	within  time.Duration
}

// next returns a frame; counted of its bytes stay in the budget until the caller
// releases them.
func (a *frameReader) next(ctx context.Context) (b []byte, counted int, err error) {
	if _, err = a.r.Peek(1); err != nil {
		return nil, 0, err
	}
	end := time.Now().Add(a.within)
	_ = a.conn.SetReadDeadline(end)
	b, err = readFrame(a.r, nil, MaxFrame, func(rest int) error {
		until, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		if !a.reading.acquire(until, rest) {
			return fmt.Errorf("%w: too many large frames are under way", errFrame)
		}
		counted = rest
		return nil
	})
	if err != nil {
		a.reading.release(counted)
		return nil, 0, err
	}
	_ = a.conn.SetReadDeadline(time.Time{})
	return b, counted, nil
}

// readFrame reads a length-prefixed frame into buf, growing it with what really
// arrives, not with what the prefix promises. Where freeFrame bytes of a larger frame
// have come, large is asked about the rest.
func readFrame(r io.Reader, buf []byte, limit int, large func(rest int) error) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(n[:]))
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, size, limit)
	}
	buf = buf[:0]
	for len(buf) < size {
		if len(buf) == freeFrame {
			if err := large(size - freeFrame); err != nil {
				return nil, err
			}
		}
		step := min(size-len(buf), freeFrame)
		at := len(buf)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return nil, fmt.Errorf("read frame: %w", err)
		}
	}
	return buf, nil
}

package outputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxTailLines is how many last lines of an output can be asked for, and
	// maxTailBytes how much they may be: what is before is left out.
	maxTailLines = 10_000
	maxTailBytes = 256 << 10
)

// queryTail reads how many lines are wanted; 0 = all.
func queryTail(r *http.Request) (int, error) {
	n, err := rest.QueryUint(r, "tail", 0, 1, maxTailLines)
	return int(n), err
}

// cutToTail returns a log without what stands before its last lines. One that is
// followed is read twice: up to now, and from there on. It takes body over.
func (o *Outputs) cutToTail(
	ctx context.Context, body io.ReadCloser, q node.LogQuery, lines int,
) (io.ReadCloser, error) {
	if !q.Follow {
		defer body.Close()
		tail, _, err := tailOf(body, lines)
		return io.NopCloser(bytes.NewReader(tail)), err
	}
	q.Follow = false
	so, _, err := o.openLog(ctx, q)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	defer so.Close()
	tail, size, err := tailOf(so, lines)
	if err == nil {
		_, err = io.CopyN(io.Discard, body, size)
	}
	if err != nil {
		_ = body.Close()
		return nil, fmt.Errorf("read the end of a log: %w", err)
	}
	return &continued{io.MultiReader(bytes.NewReader(tail), body), body}, nil
}

// continued reads a text, and then the rest of a log.
type continued struct {
	io.Reader
	io.Closer
}

// tailOf reads a log to its end and returns its last lines, and its size.
func tailOf(body io.Reader, lines int) (tail []byte, size int64, err error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		size += int64(n)
		tail = append(tail, buf[:n]...)
		if over := len(tail) - maxTailBytes; over > maxTailBytes {
			tail = append(tail[:0], tail[over:]...)
		}
		if errors.Is(err, io.EOF) {
			return lastLines(tail, lines), size, nil
		}
		if err != nil {
			return nil, size, err
		}
	}
}

// lastLines cuts a text to so many lines and to maxTailBytes.
func lastLines(text []byte, lines int) []byte {
	if over := len(text) - maxTailBytes; over > 0 {
		text = text[over:]
	}
	at := len(text)
	if at > 0 && text[at-1] == '\n' {
		at--
	}
	for ; lines > 0; lines-- {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}

// maxLastLines bounds the end of an output that a page shows.
const maxLastLines = 4 << 10

// ownRequest stands for that of a client where this broker asks for itself.
func ownRequest() *http.Request { return &http.Request{Method: http.MethodGet, Header: http.Header{}} }

// LastLines returns the end of an output, so many lines at most.
func (o *Outputs) LastLines(ctx context.Context, q node.LogQuery, lines int) ([]byte, error) {
	body, err := (&manyLogs{of: o, r: ownRequest(), tail: lines}).open(ctx, q)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	defer context.AfterFunc(ctx, func() { _ = body.Close() })() // wakes a reader that waits for more
	tail, _, err := tailOf(io.LimitReader(body, 2*maxTailBytes), lines)
	return tail[max(0, len(tail)-maxLastLines):], err
}

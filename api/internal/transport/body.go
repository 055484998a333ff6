package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

// promisedBytes are set aside for a body because its header says that it comes.
const promisedBytes = 16 << 10

// Bodies reads what clients send.
type Bodies struct {
	most, lines int64         // bytes of a body, and of one of NDJSON
	timeout     time.Duration // without a byte
	slow        *Places
	held        *held
}

// NewBodies bounds bodies to most bytes, those of NDJSON to lines, and ends those of
// which nothing comes for timeout. Slow ones need one of the places, and those that are not small share bytes.
func NewBodies(most, lines int64, timeout time.Duration, slow *Places) *Bodies {
	return &Bodies{most: most, lines: lines, timeout: timeout, slow: slow, held: newHeld(slow.whose)}
}

// Read reads a whole body that is not NDJSON. The deadline moves
// with each read, and is taken back once all has come: one that passes later
// would end the request's context.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, release, err := b.ReadHeld(w, r)
	release()
	return body, err
}

// ReadHeld is Read for bodies that wait for something once they are here: their bytes are among those that are read at
// a time until release is called, which may be so again, and after an error.
func (b *Bodies) ReadHeld(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	var bytes *share // nil while the body is small
	release = func() { bytes.release() }
	if r.ContentLength > b.most {
		return nil, release, tooLarge(b.most)
	}
	in := b.newDeadlineReader(w, r, b.most)
	defer in.finish()
	if r.ContentLength > 0 {
		// Room to see the end without growing; no more than that for a promise.
		body = make([]byte, 0, min(r.ContentLength+1, promisedBytes))
	}
	for {
		if len(body) == cap(body) {
			before := cap(body)
			if body = slices.Grow(body, 4<<10); cap(body) > 2*promisedBytes {
				if bytes == nil {
					bytes = b.held.shareOf(r.Context())
				}
				if err := bytes.grow(cap(body) - before); err != nil {
					w.Header().Set("Connection", "close") // as below
					return nil, release, err
				}
			}
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			in.stop()
			return body, release, nil
		}
		if err != nil {
			w.Header().Set("Connection", "close") // net/http must not wait for the rest
			return nil, release, b.wordError(err, b.most)
		}
	}
}

func tooLarge(limit int64) error {
	return problem.OfStatus(http.StatusRequestEntityTooLarge, fmt.Sprintf("it may have %d bytes; send many jobs as %s", limit, wire.TypeNDJSON))
}

// wordError words what went wrong while a body was read.
func (b *Bodies) wordError(err error, limit int64) error {
	var over *http.MaxBytesError
	var refused *problem.Problem
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &over):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.New(http.StatusRequestTimeout, "slow-body", "The body came too slowly",
			fmt.Sprintf("no byte came for %s", b.timeout))
	}
	return problem.New(http.StatusBadRequest, "malformed", "The body could not be read", problem.OneLine(err.Error()))
}

package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

const (
	// slowBody is how long a body may take before it is one of the slow ones, of
	// which there may be few.
	slowBody = time.Second
	// promisedBytes are set aside for a body because its header says that it comes.
	promisedBytes = 16 << 10
)

// readBody reads a whole body of at most MaxBody bytes. The deadline moves
// with each read, and is taken back once all has come: one that passes later
// would end the request's context.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > s.cfg.MaxBody {
		return nil, s.tooLarge(s.cfg.MaxBody)
	}
	in := s.newDeadlineReader(w, http.MaxBytesReader(w, r.Body, s.cfg.MaxBody))
	defer in.over()
	var body []byte
	if r.ContentLength > 0 {
		// Room to see the end without growing; no more than that for a promise.
		body = make([]byte, 0, min(r.ContentLength+1, promisedBytes))
	}
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, 4<<10)
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			in.stop()
			return body, nil
		}
		if err != nil {
			w.Header().Set("Connection", "close") // net/http must not wait for the rest
			return nil, s.bodyError(err, s.cfg.MaxBody)
		}
	}
}

func (s *Server) tooLarge(limit int64) error {
	return problem.OfStatus(http.StatusRequestEntityTooLarge, fmt.Sprintf("it may have %d bytes; send many jobs as %s", limit, wire.TypeNDJSON))
}

// bodyError words what went wrong while a body was read.
func (s *Server) bodyError(err error, limit int64) error {
	var tooLarge *http.MaxBytesError
	var refused *problem.Problem
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &tooLarge):
		return s.tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.New(http.StatusRequestTimeout, "slow-body", "The body came too slowly",
			fmt.Sprintf("no byte came for %s", s.cfg.BodyTimeout))
	}
	return problem.New(http.StatusBadRequest, "malformed", "The body could not be read", problem.OneLine(err.Error()))
}

// deadlineReader gives up on a client that sends nothing for a while. A body that
// takes longer than slowBody needs one of the few places for such, so that
// clients that send a byte now and then cannot hold all connections.
type deadlineReader struct {
	io.Reader
	out   *http.ResponseController
	wait  time.Duration
	timer *time.Timer // until the body is a slow one

	mu      sync.Mutex
	ended   bool   // guarded by mu
	leave   func() // of the place it has; guarded by mu
	refused error  // there is no place for it; guarded by mu
}

// newDeadlineReader reads a body; over must be called.
func (s *Server) newDeadlineReader(w http.ResponseWriter, r io.Reader) *deadlineReader {
	d := &deadlineReader{Reader: r, out: http.NewResponseController(w), wait: s.cfg.BodyTimeout}
	d.timer = time.AfterFunc(slowBody, func() { d.slow(&s.bodies) })
	return d
}

// slow takes a place for a body that is still on its way, or has its read end.
func (d *deadlineReader) slow(at *places) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	if d.leave, d.refused = at.enter(); d.refused != nil {
		_ = d.out.SetReadDeadline(time.Now())
	}
}

// Read implements io.Reader.
func (d *deadlineReader) Read(p []byte) (int, error) {
	if err := d.extend(); err != nil {
		return 0, err
	}
	n, err := d.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.refused != nil {
			err = d.refused
		}
	}
	return n, err
}

func (d *deadlineReader) extend() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused == nil {
		_ = d.out.SetReadDeadline(time.Now().Add(d.wait)) // not every connection has one
	}
	return d.refused
}

// stop takes the deadline back once all of the body has come: one that passes
// later would end the request's context.
func (d *deadlineReader) stop() {
	d.over()
	_ = d.out.SetReadDeadline(time.Time{})
}

// over gives the place back; nothing is read any more. It is idempotent.
func (d *deadlineReader) over() {
	d.timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.leave != nil {
		d.leave()
		d.leave = nil
	}
}

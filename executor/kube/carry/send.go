package carry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Send sends what a task has left in a folder, and returns when the handler has all of it for good. run is the life of
// its container. It goes on until ctx ends, or the handler wants it no more. REQUIRES: no process of the task is left.
func (c *Client) Send(ctx context.Context, run, dir string, want executor.Outputs) error {
	s := &sending{Client: c, run: run, dir: dir, want: want}
	for {
		done, err := s.once(ctx)
		if _, no := errors.AsType[*refused](err); done || no {
			return err
		}
		c.http.CloseIdleConnections() // the next one may find another way
		if err = c.pause(ctx, err); err != nil {
			return fmt.Errorf("send its files: %w", err)
		}
	}
}

type sending struct {
	*Client
	run  string
	dir  string
	want executor.Outputs
	// fault is why there is nothing to be sent, found only after some was.
	fault *fault
}

// once sends what the handler has not.
func (s *sending) once(ctx context.Context) (done bool, err error) {
	st, err := readState(s.call(ctx, http.MethodGet, "out", s.run, 0, nil))
	if err != nil || st.Whole {
		return st.Whole, err
	}
	if s.fault != nil {
		st.Have = 0
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalled := time.AfterFunc(settle, cancel)
	defer stalled.Stop()
	r, w := io.Pipe()
	to := &later{to: w, skip: st.Have, moves: func() { stalled.Reset(stall) }}
	ended := make(chan error, 1)
	go func() {
		failed := s.write(ctx, to)
		stalled.Reset(settle)
		_ = w.CloseWithError(failed) // never fails
		ended <- failed
	}()
	st, err = readState(s.call(ctx, http.MethodPost, "out", s.run, st.Have, r))
	_ = r.CloseWithError(io.ErrClosedPipe) // never fails; who writes still ends
	if b, is := errors.AsType[*broken](<-ended); is {
		s.fault = b.fault
		return false, b
	}
	return st.Whole, err
}

func (s *sending) write(ctx context.Context, w io.Writer) error {
	if s.fault != nil {
		return recordFault(w, s.fault)
	}
	return record(ctx, w, s.dir, s.want)
}

// later passes on what comes after the first bytes.
type later struct {
	to    io.Writer
	skip  int64
	moves func() // called for each write, before
}

// Write implements io.Writer.
func (l *later) Write(p []byte) (int, error) {
	n := min(int64(len(p)), l.skip)
	l.skip -= n
	if int(n) == len(p) {
		return len(p), nil
	}
	l.moves()
	m, err := l.to.Write(p[n:])
	return int(n) + m, err
}

func readState(body io.ReadCloser, err error) (st State, _ error) {
	if err != nil {
		return st, err
	}
	defer body.Close()
	if err = json.NewDecoder(io.LimitReader(body, maxWords)).Decode(&st); err != nil {
		return st, fmt.Errorf("read the handler's answer: %w", err)
	}
	return st, nil
}

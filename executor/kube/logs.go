package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// taskOutput is what tasks write: read from their nodes, and kept in their folders.
type taskOutput struct {
	cfg   *Config
	log   zerolog.Logger
	life  *life
	works *workSet
	view  *clusterView
	logs  *podLogs
}

type eof struct{}

// Read implements io.Reader.
func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// read opens a stream of an attempt: see [executor.Handler]. What runs is read from its node,
// what has ended from its folder.
func (o *taskOutput) read(ctx context.Context, id executor.ID, stream string, follow bool) (io.ReadCloser, error) {
	return o.works.attempts.Logs(ctx, id, stream, func(w *work, n int) (io.ReadCloser, error) {
		r := &reader{o: o, w: w, stream: n, follow: follow}
		r.ctx, r.cancel = context.WithCancel(ctx)
		if err := r.first(); err != nil {
			r.cancel()
			return nil, err
		}
		return r, nil
	})
}

// reader reads an attempt's output: first from its node, then what its folder has
// beyond that.
type reader struct {
	o      *taskOutput
	w      *work
	stream int
	follow bool
	pos    int64           // of what was read
	skip   int64           // of in, read already
	in     io.ReadCloser   // nil = to be opened
	kept   bool            // in is the folder's
	ctx    context.Context //nolint:containedctx // the reader's life is the caller's
	cancel context.CancelFunc
}

// first opens what is there, so that what is not to be had is said at once.
func (r *reader) first() error {
	if e := r.o.works.attempts.EndOf(r.w); e != nil {
		return r.openKept(e)
	}
	return nil
}

func (r *reader) openKept(e *attempts.End) error {
	if why := r.o.whyMissing(r.w); why != "" {
		return fmt.Errorf("logs of %s: %w: %s", r.w.Name, executor.ErrUnknownAttempt, why)
	}
	if e.Out[r.stream] == 0 {
		r.in, r.kept = io.NopCloser(eof{}), true // it never ran, or wrote nothing
		return nil
	}
	var f io.ReadSeekCloser
	f, err := outputs.OpenRegular(filepath.Join(r.w.dir, attempts.Streams[r.stream]), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) { // put into the store just now
		f, err = r.o.works.attempts.Kept(r.w.Task.ID, r.stream)
	}
	if err != nil {
		return fmt.Errorf("logs of %s: %w", r.w.Name, err)
	}
	_, err = f.Seek(min(r.pos, e.Out[r.stream]), io.SeekStart)
	r.in, r.kept = f, true
	return err
}

// whyMissing returns why an output is not to be had, "" = it is.
func (o *taskOutput) whyMissing(w *work) string {
	o.works.mu.Lock()
	defer o.works.mu.Unlock()
	return w.NoOutput
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.in == nil {
			if err := r.reopen(); err != nil {
				return 0, err
			}
		}
		n, err := r.read(p)
		if n > 0 {
			return n, nil
		}
		switch {
		case err == nil && len(p) > 0:
			continue
		case err == nil:
			return 0, nil
		case r.ctx.Err() != nil:
			return 0, r.ctx.Err()
		case r.kept && errors.Is(err, io.EOF), !r.follow && errors.Is(err, io.EOF):
			return 0, io.EOF
		case r.kept || !r.follow:
			return 0, err
		}
		// The task has ended, or the connection has: see what is beyond.
		if err := r.pause(); err != nil {
			return 0, err
		}
	}
}

// read takes the next bytes, without those that were read before.
func (r *reader) read(p []byte) (int, error) {
	for r.skip > 0 {
		n, err := io.CopyN(io.Discard, r.in, r.skip)
		r.skip -= n
		if err != nil {
			return 0, err
		}
	}
	left := r.o.cfg.MaxLogBytes - r.pos
	if left <= 0 {
		return 0, io.EOF
	}
	n, err := r.in.Read(p[:min(int64(len(p)), left)])
	r.pos += int64(n)
	return n, err
}

// pause waits a moment for the attempt's end after a stream has ended.
func (r *reader) pause() error {
	r.in.Close()
	r.in = nil
	again := time.After(relook)
	if r.pos >= r.o.cfg.MaxLogBytes {
		again = nil // all that may be shown was read
	}
	select {
	case <-r.w.Done:
	case <-again:
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-r.o.life.ctx.Done():
		return attempts.ErrClosed
	}
	return nil
}

// reopen opens the output where it is now.
func (r *reader) reopen() error {
	if e := r.o.works.attempts.EndOf(r.w); e != nil {
		return r.openKept(e)
	}
	if r.follow {
		select {
		case <-r.w.running:
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-r.o.life.ctx.Done():
			return attempts.ErrClosed
		}
		if e := r.o.works.attempts.EndOf(r.w); e != nil {
			return r.openKept(e)
		}
	}
	pod := r.o.view.podOf(r.w.job)
	var err error
	if pod == nil || pod.node == "" {
		r.in = io.NopCloser(eof{})
		return nil
	}
	if r.in, err = r.o.logs.open(r.ctx, pod.name, r.stream, r.follow); err != nil {
		r.in = nil
		if r.follow && r.ctx.Err() == nil { // it may have ended meanwhile
			r.in = io.NopCloser(eof{})
			return nil
		}
		return fmt.Errorf("logs of %s: %w", r.w.Name, err)
	}
	r.skip = r.pos
	return nil
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.cancel()
	if r.in == nil {
		return nil
	}
	return r.in.Close()
}

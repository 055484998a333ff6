package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

const (
	// relook is how soon a kubelet that could not tell an output is asked again.
	relook = 500 * time.Millisecond
	// maxCopy bounds a copy that goes on, in call timeouts: workers wait for it.
	maxCopy = 3
)

// keep copies what an ended task has written into its folder, since it goes
// with its pod. again: the node could not tell it now. What was had of an output that is
// given up is kept, and ends with a line that says so.
func (o *taskOutput) keep(
	ctx context.Context, w *work, pod *podView, gone bool,
) (out [2]int64, again time.Duration) {
	o.uncut(w)
	if gone {
		return o.cut(w, out, 0, "its pod was removed before it could be read"), 0
	}
	o.triesAgain(w)
	for n := range attempts.Streams {
		var err error
		if out[n], err = o.copy(ctx, w, pod.name, n); err == nil {
			continue
		}
		if o.life.ctx.Err() != nil || o.triesAgain(w) && !apierrors.IsNotFound(err) {
			return out, relook
		}
		o.log.Warn().Err(err).Str("attempt", w.Name).Msg("the output of a task could not be had from its node, or not all of it")
		return o.cut(w, out, n, inLine(err.Error())), 0
	}
	return out, 0
}

// cut ends an output of which only the first whole streams could be had. Nothing at all is
// noted as missing.
func (o *taskOutput) cut(w *work, out [2]int64, whole int, why string) [2]int64 {
	last := len(attempts.Streams)
	if o.logs.merged.Load() {
		last = 1 // the other is empty anywhere
	}
	var had int64
	for n := whole; n < last; n++ {
		out[n] = sizeOf(o.file(w, n))
		had += out[n]
	}
	if had == 0 && whole == 0 {
		o.markMissing(w, why)
		return out
	}
	for n := whole; n < last; n++ {
		line := cutLine(out[n], why)
		if err := appendTo(o.file(w, n), line); err != nil {
			o.log.Warn().Err(err).Str("attempt", w.Name).Msg("it cannot be said that a task's output is cut")
			continue
		}
		out[n] += int64(len(line))
	}
	return out
}

// uncut takes the lines of an earlier cut off, which was not the last: its end was not written, or is not certain yet.
func (o *taskOutput) uncut(w *work) {
	for n := range attempts.Streams {
		if err := removeCutLine(o.file(w, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			o.log.Warn().Err(err).Str("attempt", w.Name).Msg("a task's output may say twice that it is cut")
		}
	}
}

func (o *taskOutput) file(w *work, stream int) string {
	return filepath.Join(w.dir, attempts.Streams[stream])
}

func sizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// markMissing notes why an output is not to be had.
func (o *taskOutput) markMissing(w *work, why string) {
	o.works.mu.Lock()
	defer o.works.mu.Unlock()
	w.NoOutput = why
}

// triesAgain reports whether the output is still worth a try. Its time begins with the first.
func (o *taskOutput) triesAgain(w *work) bool {
	o.works.mu.Lock()
	defer o.works.mu.Unlock()
	if w.patience.IsZero() {
		w.patience = time.Now().Add(o.cfg.LogWait)
	}
	return time.Now().Before(w.patience)
}

// copy writes one stream's file, over what an earlier try had of it: of those the longest is
// left. It goes on as long as something comes, maxCopy call timeouts at most.
func (o *taskOutput) copy(ctx context.Context, w *work, pod string, stream int) (int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxCopy*o.cfg.CallTimeout,
		fmt.Errorf("its node takes longer than %s for it", maxCopy*o.cfg.CallTimeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stall := time.AfterFunc(o.cfg.CallTimeout, func() {
		stop(fmt.Errorf("nothing came from its node for %s", o.cfg.CallTimeout))
	})
	defer stall.Stop()
	n, err := o.copyFrom(ctx, w, pod, stream, func() { stall.Reset(o.cfg.CallTimeout) })
	if why := context.Cause(ctx); err != nil && why != nil {
		return n, why
	}
	return n, err
}

// copyFrom calls comes for whatever does.
func (o *taskOutput) copyFrom(
	ctx context.Context, w *work, pod string, stream int, comes func(),
) (int64, error) {
	in, err := o.logs.open(ctx, pod, stream, false)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(o.file(w, stream), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, lively{io.LimitReader(in, o.cfg.MaxLogBytes), comes})
	if err == nil {
		err = out.Truncate(n)
	}
	return n, errors.Join(err, out.Close())
}

// lively tells of what is read.
type lively struct {
	io.Reader
	comes func()
}

// Read implements io.Reader.
func (l lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.comes()
	}
	return n, err
}

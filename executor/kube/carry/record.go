package carry

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/staging"
)

// record writes what a task has left as a stream: its files in the order of their paths, then what is missing and
// what cannot travel, or why there are none. An error that is a *broken came when files were written already.
func record(ctx context.Context, w io.Writer, dir string, want executor.Outputs) error {
	r := &recorder{to: w}
	err := staging.CollectWhatIs(ctx, dir, want, staging.AnyOwner, r, func(m executor.MissingOutputError) {
		r.missing = append(r.missing, m)
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.failed != nil:
		return r.failed
	case err != nil && r.begun:
		return &broken{faultOf(err)}
	case err != nil:
		return recordFault(w, faultOf(err))
	}
	for i := range r.missing {
		if err = writeFrame(w, &frame{Missing: &r.missing[i]}); err != nil {
			return err
		}
	}
	slices.SortFunc(r.skipped, func(a, b skipped) int {
		return cmp.Or(slices.Compare(a.Name, b.Name), strings.Compare(a.Why, b.Why))
	})
	for i := range r.skipped {
		if err = writeFrame(w, &frame{Skipped: &r.skipped[i]}); err != nil {
			return err
		}
	}
	return writeFrame(w, &frame{End: true})
}

// recordFault writes a stream that says why there are no files.
func recordFault(w io.Writer, f *fault) error {
	return errors.Join(writeFrame(w, &frame{Fault: f}), writeFrame(w, &frame{End: true}))
}

// broken says that files were written before it was clear that not all can be.
type broken struct{ fault *fault }

// Error implements error.
func (b *broken) Error() string { return b.fault.err().Error() }

func writeFrame(w io.Writer, f *frame) error {
	line, err := f.line()
	if err == nil {
		_, err = w.Write(line)
	}
	return err
}

// recorder is the sink of a collection.
type recorder struct {
	to      io.Writer
	begun   bool
	failed  error // of to
	skipped []skipped
	missing []executor.MissingOutputError
}

// File implements executor.OutputSink.
func (r *recorder) File(f executor.OutputFile, from io.Reader) error {
	r.begun = true
	if r.failed = writeFrame(r.to, &frame{File: &f}); r.failed != nil {
		return r.failed
	}
	w := &noted{Writer: r.to}
	_, err := io.Copy(w, from)
	r.failed = w.err
	return err
}

// Skipped implements executor.OutputSink.
func (r *recorder) Skipped(name, why string) {
	r.skipped = append(r.skipped, skipped{Name: []byte(name), Why: why})
}

// noted keeps the error of a writer.
type noted struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (n *noted) Write(p []byte) (int, error) {
	w, err := n.Writer.Write(p)
	n.err = err
	return w, err
}

package filesend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// sendPieces sends a large blob. What the broker has of it from an earlier time is not sent again.
func (s *Sender) sendPieces(ctx context.Context, b *blob) error {
	if b.file == nil {
		return s.upload(ctx, b, bytes.NewReader(b.content))
	}
	file, err := openUnchanged(b.file.local, b.file.info)
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	err = s.upload(ctx, b, &watched{File: file, blob: b, end: end})
	if cause := context.Cause(ctx); errors.Is(cause, ErrChanged) {
		return cause
	}
	return err
}

// upload sends a large blob's bytes. After a cut the broker may have less than was sent: that is not counted twice.
func (s *Sender) upload(ctx context.Context, b *blob, content io.ReaderAt) error {
	told := int64(0)
	err := s.broker.Upload(ctx, b.Hash.String(), content, b.Size, func(at int64) {
		if at > told {
			s.progress.Done(at - told)
			told = at
		}
	})
	if err != nil {
		return b.failed(err)
	}
	return nil
}

// watched is a file whose sending ends once it is not as it was found.
type watched struct {
	*os.File
	blob *blob
	end  context.CancelCauseFunc
}

// ReadAt implements io.ReaderAt.
func (w *watched) ReadAt(p []byte, at int64) (int, error) {
	n, err := w.File.ReadAt(p, at)
	if changed := checkUnchanged(w.File, w.blob.file.local, w.blob.file.info); changed != nil {
		w.end(changed)
		return 0, changed
	}
	return n, err
}

package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/cloudshare/cloudshare/node/files"
)

// maxResumed is how often the reading of one object is gone on with after it broke off.
const maxResumed = 5

// object is the content of an object, all of it in one state: io.EOF says that the server had the same one before the
// first byte and behind the last.
type object struct {
	m    *Imports
	ctx  context.Context //nolint:containedctx // it is that of one fetch, whose reader this is
	name files.Object
	sure bool // a hash says whether the bytes are what was asked for

	body     io.ReadCloser
	etag     string // of the state that is read
	size, at int64
	resumed  int
}

// openObject asks for an object.
func (m *Imports) openObject(ctx context.Context, cancel context.CancelCauseFunc, k key) (io.ReadCloser, int64, error) {
	name, err := m.checkObject(k.url)
	if err != nil {
		return nil, 0, err
	}
	defer time.AfterFunc(m.cfg.Stall, func() { cancel(errStalled) }).Stop()
	o := &object{m: m, ctx: ctx, name: name, sure: k.want != files.Hash{}}
	if o.body, o.size, err = o.ask(); err != nil {
		return nil, 0, err
	}
	return o, o.size, nil
}

// ask asks for what was not read yet, and returns it with its number of bytes. The first answer says which state is
// read; what is not of that one is refused.
func (o *object) ask() (io.ReadCloser, int64, error) {
	var opts minio.GetObjectOptions
	if o.etag != "" {
		opts.Set("If-Match", `"`+o.etag+`"`)
	}
	if o.at > 0 {
		opts.Set("Range", fmt.Sprintf("bytes=%d-", o.at))
	}
	got, err := o.m.s3.get(o.ctx, o.name, opts)
	if err != nil {
		return nil, 0, o.m.explainS3(o.name, err)
	}
	if err = o.checkAnswer(got.info, got.header); err != nil {
		_ = got.body.Close() // nothing of it is wanted
		return nil, 0, err
	}
	o.etag = got.info.ETag
	return got.body, got.info.Size, nil
}

// checkAnswer refuses an answer that is not the rest of what was read.
func (o *object) checkAnswer(info minio.ObjectInfo, header http.Header) error {
	part := header.Get("Content-Range")
	switch {
	case info.Size < 0 || info.ETag == "":
		return failed(errors.New("its server does not say how many bytes it has, or in which state (ETag)"))
	case o.etag != "" && info.ETag != o.etag:
		return errChanged()
	case o.at == 0 && part != "",
		o.at > 0 && (part != fmt.Sprintf("bytes %d-%d/%d", o.at, o.size-1, o.size) || info.Size != o.size-o.at):
		return failed(errors.New("its server sends another part than was asked for"))
	}
	return nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	o.at += int64(n)
	switch {
	case err == nil:
		return n, nil
	case o.at == o.size:
		return n, o.confirm()
	}
	return n, o.resume(err)
}

// confirm returns io.EOF if the object is still in the state that was read. A hash says more.
func (o *object) confirm() error {
	if o.sure {
		return io.EOF
	}
	info, err := o.m.s3.stat(o.ctx, o.name)
	switch {
	case minio.ToErrorResponse(err).StatusCode == http.StatusNotFound:
		return errChanged()
	case err != nil:
		return o.m.explainS3(o.name, err)
	case info.ETag != o.etag || info.Size != o.size:
		return errChanged()
	}
	return io.EOF
}

// resume goes on where the reading broke off, if that helps.
func (o *object) resume(why error) error {
	if o.ctx.Err() != nil || o.resumed == maxResumed {
		return failed(fmt.Errorf("it broke off: %w", plain(why)))
	}
	o.resumed++
	body, _, err := o.ask()
	if err != nil {
		return err
	}
	_ = o.body.Close() // it has failed
	o.body = body
	return nil
}

// Close implements io.Closer.
func (o *object) Close() error { return o.body.Close() }

func errChanged() error {
	return failed(errors.New("it changed while it was read: ask again"))
}

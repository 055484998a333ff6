package carry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/executor/staging"
)

// Fetch puts the files of the attempt's task into a folder, which it empties before. It goes on until they are there,
// ctx ends, or the handler says that there are none.
func (c *Client) Fetch(ctx context.Context, dir string) error {
	to, err := staging.OpenFolder(dir, staging.OpenRights())
	if err != nil {
		return err
	}
	defer to.Close()
	if err = to.Empty(); err != nil { // an earlier try of this container
		return err
	}
	in := &resumed{ctx: ctx, client: c}
	defer in.close()
	if err = put(in, to); err != nil {
		return fmt.Errorf("fetch its files: %w", err)
	}
	return nil
}

// resumed reads a stream from connections, one after the other.
type resumed struct {
	ctx    context.Context //nolint:containedctx // of one call
	client *Client
	body   io.ReadCloser // nil = none
	at     int64
}

// Read implements io.Reader. It ends with the reader's want of more: the stream says itself where it ends.
func (r *resumed) Read(p []byte) (int, error) {
	for {
		n, err := r.read(p)
		r.at += int64(n)
		if _, no := errors.AsType[*refused](err); n > 0 || no {
			return n, err
		}
		if err != nil {
			r.close()
			if err = r.client.pause(r.ctx, err); err != nil {
				return 0, err
			}
		}
	}
}

func (r *resumed) read(p []byte) (n int, err error) {
	if r.body == nil {
		if r.body, err = r.client.call(r.ctx, http.MethodGet, "in", "", r.at, nil); err != nil {
			return 0, err
		}
	}
	body := r.body
	defer time.AfterFunc(stall, func() { body.Close() }).Stop()
	if n, err = body.Read(p); n > 0 {
		err = nil
	}
	return n, err
}

func (r *resumed) close() {
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}

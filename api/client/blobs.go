package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// MaxWhole is how many bytes PutBlob sends at most; larger files are Upload's.
const MaxWhole = 8 << 20

// MissingBlobs returns which of the user's blobs the broker's site does not have, of 1000 at most.
func (c *Client) MissingBlobs(ctx context.Context, sha256 []string) ([]string, error) {
	out, err := post[wire.MissingBlobs](ctx, c, "/v1/blobs/missing", wire.BlobHashes{SHA256: sha256})
	return out.Missing, err
}

// PutBlob sends a file of at most MaxWhole bytes whole.
func (c *Client) PutBlob(ctx context.Context, sha256 string, content io.ReaderAt, size int64) error {
	res, err := c.do(ctx, http.MethodPut, "/v1/blobs/"+url.PathEscape(sha256), nil, section(content, 0, size),
		http.Header{"Content-Type": {"application/octet-stream"}})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// section returns a part of a file, nil if there is nothing in it: net/http then says that the body is empty.
func section(content io.ReaderAt, from, to int64) io.Reader {
	if from == to {
		return http.NoBody
	}
	return io.NewSectionReader(content, from, to-from)
}

const (
	// uploadPart is how many bytes of an upload one request sends.
	uploadPart = 8 << 20
	// uploadTries is how often an upload is taken up again that has come no further.
	uploadTries = 8
	// uploadPause is between the first two of them; it doubles, to a limit.
	uploadPause, maxUploadPause = 500 * time.Millisecond, 15 * time.Second
)

// Upload sends a large file by its hash. It goes on where an earlier upload of the same file has ended, and takes it up
// again when the broker is away or the connection is cut, as long as that brings it further. sent, if not nil, is
// called with how many bytes are there, which may be less than before.
func (c *Client) Upload(
	ctx context.Context, sha256 string, content io.ReaderAt, size int64, sent func(bytes int64),
) error {
	u := upload{c: c, sha256: sha256, content: content, size: size, told: sent}
	pause := uploadPause
	for tries := 0; ; tries++ {
		before := u.offset
		err := u.run(ctx)
		if err == nil || !u.passes(err) || ctx.Err() != nil {
			return err
		}
		if u.offset > before {
			tries, pause = 0, uploadPause
		}
		if tries >= uploadTries {
			return fmt.Errorf("upload of %s stays at %d of %d bytes: %w", sha256, u.offset, size, err)
		}
		if err = c.sleep(ctx, max(pause, retryAfter(err))); err != nil {
			return err
		}
		pause = min(2*pause, maxUploadPause)
	}
}

// passes reports whether trying again may help: what had been sent may also be gone, and is sent again.
func (u *upload) passes(err error) bool {
	var p *Problem
	if !errors.As(err, &p) {
		return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTokenAway) || errors.Is(err, ErrBadAnswer)
	}
	switch p.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return p.Type != wire.ProblemPrefix+"files-unavailable" && p.Type != wire.ProblemPrefix+"store-full"
	case http.StatusNotFound, http.StatusGone:
		return u.begun
	}
	return false
}

func retryAfter(err error) time.Duration {
	var p *Problem
	if errors.As(err, &p) {
		return min(time.Duration(p.RetryAfter)*time.Second, maxUploadPause)
	}
	return 0
}

// WithSleep has an upload that came no further wait by sleep before it is taken up again, as for a test with a clock of
// its own: sleep returns ctx's error once that has ended.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(c *Client) { c.sleep = sleep }
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// upload is one that goes on.
type upload struct {
	c       *Client
	sha256  string
	content io.ReaderAt
	size    int64
	told    func(bytes int64)
	offset  int64
	begun   bool // the broker has answered that it takes it, in this run
}

const headerOffset = "Upload-Offset"

func tus() http.Header { return http.Header{"Tus-Resumable": {"1.0.0"}} }

// run begins the upload, or takes it up, and sends what is missing.
func (u *upload) run(ctx context.Context) error {
	u.begun = false
	h := tus()
	h.Set("Upload-Length", strconv.FormatInt(u.size, 10))
	h.Set("Upload-Metadata", "sha256 "+base64.StdEncoding.EncodeToString([]byte(u.sha256)))
	if err := u.ask(ctx, http.MethodPost, "/v1/uploads", nil, h); err != nil {
		return err
	}
	u.begun = true
	for u.offset < u.size {
		h := tus()
		h.Set("Content-Type", "application/offset+octet-stream")
		h.Set(headerOffset, strconv.FormatInt(u.offset, 10))
		from := u.offset
		body := section(u.content, from, min(u.size, from+uploadPart))
		err := u.ask(ctx, http.MethodPatch, "/v1/uploads/"+url.PathEscape(u.sha256)+"-"+strconv.FormatInt(u.size, 10), body, h)
		if err != nil {
			return err
		}
		if u.offset <= from {
			return fmt.Errorf("%w: the upload of %s stays at %d bytes", ErrBadAnswer, u.sha256, from)
		}
	}
	return nil
}

// ask sends one request, whose answer says how far the upload is.
func (u *upload) ask(ctx context.Context, method, path string, body io.Reader, h http.Header) error {
	res, err := u.c.do(ctx, method, path, nil, body, h)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	offset, err := strconv.ParseInt(res.Header.Get(headerOffset), 10, 64)
	if err != nil || offset < 0 || offset > u.size {
		return fmt.Errorf("%w: %s %s: %s is %.40q", ErrBadAnswer, method, path, headerOffset, res.Header.Get(headerOffset))
	}
	if u.offset = offset; u.told != nil {
		u.told(offset)
	}
	return nil
}

// OpenBlob reads one of the user's blobs; the caller closes it. A read error other than io.EOF means that it is not
// whole.
func (c *Client) OpenBlob(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	return c.open(ctx, "/v1/blobs/"+url.PathEscape(sha256), nil)
}

// open reads bytes.
func (c *Client) open(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	res, err := c.do(ctx, http.MethodGet, path, query, nil, nil)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// Imported says how far an import is.
type Imported struct {
	Blob *wire.Blob // nil: it is on its way
	wire.Importing
}

// Import has the broker fetch a file from a URL, of a SHA-256 unless that is "", or says how far that is: ask again
// until there is a Blob.
func (c *Client) Import(ctx context.Context, from, sha256 string) (Imported, error) {
	got, err := post[struct {
		SHA256   string `json:"sha256"`
		Size     int64  `json:"size"`
		Received int64  `json:"received"`
	}](ctx, c, "/v1/imports", wire.ImportRequest{URL: from, SHA256: sha256})
	if err != nil || got.SHA256 == "" {
		return Imported{Importing: wire.Importing{Received: got.Received, Size: got.Size}}, err
	}
	b := wire.Blob{SHA256: got.SHA256, Size: got.Size}
	return Imported{Blob: &b, Importing: wire.Importing{Received: b.Size, Size: b.Size}}, nil
}

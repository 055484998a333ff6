package filesend

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// tusVersion is that of the protocol for uploads that can be resumed: https://tus.io/protocols/resumable-upload
const tusVersion = "1.0.0"

// upload is a blob that is sent in pieces.
type upload struct {
	*Sender
	blob   *blob
	source io.ReaderAt
	check  func() error // whether the source is as it was
	told   int64        // bytes that Progress has heard of
}

// sendPieces sends a large blob. What the broker has of it from an earlier time is not sent again.
func (s *Sender) sendPieces(ctx context.Context, b *blob) error {
	u := upload{Sender: s, blob: b, source: bytes.NewReader(b.content), check: func() error { return nil }}
	if b.file != nil {
		file, err := openUnchanged(b.file.local, b.file.info)
		if err != nil {
			return err
		}
		defer file.Close()
		u.source, u.check = file, func() error { return checkUnchanged(file, b.file.local, b.file.info) }
	}
	switch err := u.send(ctx); {
	case err == nil, errors.Is(err, ErrChanged):
		return err
	default:
		return b.failed(err)
	}
}

// path is where the upload is: the protocol's Location, which the contract fixes.
func (u *upload) path() string { return fmt.Sprintf("/v1/uploads/%s-%d", u.blob.Hash, u.blob.Size) }

func (u *upload) send(ctx context.Context) error {
	at, err := u.begin(ctx)
	for failed := 0; err == nil && at < u.blob.Size; {
		u.tell(at)
		var next int64
		next, err = u.piece(ctx, at)
		if err == nil && next > at {
			at, failed = next, 0
			continue
		}
		if err == nil {
			err = fmt.Errorf("%w: it is at byte %d behind a piece at %d", client.ErrBadAnswer, next, at)
		}
		if failed++; failed == tries || !resumes(err) || ctx.Err() != nil {
			break
		}
		if err = u.pause(ctx, cli.RetryPause<<failed); err == nil {
			at, err = u.begin(ctx)
		}
	}
	if err == nil {
		u.tell(u.blob.Size)
	}
	return err
}

// resumes reports whether an upload can go on behind an error: at the place that the broker names.
func resumes(err error) bool {
	var problem *wire.Problem
	return cli.IsUnanswered(err) || errors.As(err, &problem) &&
		(problem.Status == http.StatusConflict || problem.Status == http.StatusNotFound ||
			problem.Status == http.StatusGone)
}

// tell shows how much the broker has. After a cut it may have less than was sent: that is not counted twice.
func (u *upload) tell(at int64) {
	if at > u.told {
		u.progress.Done(at - u.told)
		u.told = at
	}
}

// begin begins or resumes the upload, and returns how much the broker has.
func (u *upload) begin(ctx context.Context) (at int64, err error) {
	header := http.Header{
		"Tus-Resumable": {tusVersion}, "Upload-Length": {strconv.FormatInt(u.blob.Size, 10)},
		"Upload-Metadata": {"sha256 " + base64.StdEncoding.EncodeToString([]byte(u.blob.Hash.String()))},
	}
	err = u.again(ctx, func() error {
		res, asked := u.broker.Ask(ctx, http.MethodPost, "/v1/uploads", nil, nil, header)
		if asked != nil {
			return asked
		}
		defer res.Body.Close()
		at, err = offsetIn(res, u.blob.Size)
		return err
	})
	return at, err
}

// piece sends the piece at a place, and returns where the next one begins.
func (u *upload) piece(ctx context.Context, at int64) (next int64, err error) {
	data := make([]byte, min(maxWhole, u.blob.Size-at))
	n, err := u.source.ReadAt(data, at)
	if changed := u.check(); changed != nil {
		return 0, changed
	}
	if n < len(data) {
		return 0, err
	}
	res, err := u.broker.Ask(ctx, http.MethodPatch, u.path(), nil, bytes.NewReader(data), http.Header{
		"Tus-Resumable": {tusVersion}, "Upload-Offset": {strconv.FormatInt(at, 10)},
		"Content-Type": {"application/offset+octet-stream"},
	})
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return offsetIn(res, u.blob.Size)
}

// offsetIn reads how much the broker has.
func offsetIn(res *http.Response, size int64) (int64, error) {
	at, err := strconv.ParseInt(res.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || at < 0 || at > size {
		return 0, fmt.Errorf("%w: Upload-Offset %.40q of %d bytes", client.ErrBadAnswer,
			res.Header.Get("Upload-Offset"), size)
	}
	return at, nil
}

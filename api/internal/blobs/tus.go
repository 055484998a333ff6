package blobs

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/files/uploads"
)

// versioned has a handler answer by the one version of the protocol that is spoken.
func (b *Blobs) versioned(h rest.Handler) rest.Handler {
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		w.Header().Set(headerResumable, tusVersion)
		if got := r.Header.Values(headerResumable); len(got) != 1 || got[0] != tusVersion {
			w.Header().Set(headerVersion, tusVersion)
			return problem.New(http.StatusPreconditionFailed, "upload-version", "The version of the upload protocol is not spoken",
				headerResumable+" must be "+tusVersion)
		}
		if b.Uploads == nil {
			return node.ErrNoFiles
		}
		return h(w, r, param)
	}
}

// options says what of the protocol is spoken.
func (b *Blobs) options(w http.ResponseWriter, _ *http.Request, _ func(string) string) error {
	h := w.Header()
	h.Set(headerResumable, tusVersion)
	h.Set(headerVersion, tusVersion)
	h.Set("Tus-Extension", extensions)
	h.Set("Tus-Max-Size", strconv.FormatInt(files.MaxFile, 10))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// come returns how many of a blob's bytes have come; open begins or resumes the upload of one that is not whole.
func (b *Blobs) come(
	r *http.Request, blob files.Blob, open func(user string, blob files.Blob) (*uploads.Upload, error),
) (int64, error) {
	leave, err := b.Writing.Enter(r.Context())
	if err != nil {
		return 0, err
	}
	defer leave()
	whole, err := b.whole(r, blob)
	if err != nil || whole {
		return blob.Size, err
	}
	u, err := open(user(r), blob)
	if err != nil {
		return 0, err
	}
	return b.offset(r, u, blob)
}

// create begins an upload, or takes it up.
func (b *Blobs) create(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	blob, err := uploadOf(r.Header)
	if err != nil {
		return err
	}
	offset, err := b.come(r, blob, b.Uploads.Begin)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/uploads/"+blob.Hash.String()+"-"+strconv.FormatInt(blob.Size, 10))
	w.Header().Set(headerOffset, strconv.FormatInt(offset, 10))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// whole reports whether the user has the blob.
func (b *Blobs) whole(r *http.Request, blob files.Blob) (bool, error) {
	got, there, err := place{b.Broker}.look(user(r), blob.Hash)
	if err != nil {
		return false, err
	}
	if there && got.Size != blob.Size {
		return false, problem.New(http.StatusUnprocessableEntity, problem.WrongHash, "The bytes have another hash",
			"what has that SHA-256 has "+strconv.FormatInt(got.Size, 10)+" bytes")
	}
	return there, nil
}

// offset returns how many bytes of an upload are there, and releases it. One that lacks none is ended: a crash may have
// come before that.
func (b *Blobs) offset(r *http.Request, u *uploads.Upload, blob files.Blob) (int64, error) {
	defer u.Release()
	p, err := b.Broker.BeginBlob(user(r), blob)
	if err != nil {
		return 0, b.refused(u, err)
	}
	offset, err := u.Offset(p)
	if err == nil && offset == blob.Size {
		offset, err = u.Write(p, http.NoBody)
		if err == nil {
			u.End()
		}
	}
	return offset, b.refused(u, errors.Join(err, p.Close()))
}

// refused ends an upload whose bytes are not what was said: it can only begin again.
func (b *Blobs) refused(u *uploads.Upload, err error) error {
	if errors.Is(err, store.ErrWrongHash) {
		u.End()
	}
	return err
}

// named returns the blob of an upload's path.
func named(param func(string) string) (files.Blob, error) {
	blob, err := uploads.ParseName(param("upload"))
	if err != nil {
		return blob, problem.OfStatus(http.StatusNotFound, "an upload is SHA256-SIZE, as the Location of POST /v1/uploads has it")
	}
	return blob, nil
}

func (b *Blobs) head(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	w.Header().Set("Cache-Control", "no-store")
	blob, err := named(param)
	if err != nil {
		return err
	}
	offset, err := b.come(r, blob, b.Uploads.Resume)
	if err != nil {
		return err
	}
	w.Header().Set(headerOffset, strconv.FormatInt(offset, 10))
	w.Header().Set(headerLength, strconv.FormatInt(blob.Size, 10))
	w.WriteHeader(http.StatusOK)
	return nil
}

func (b *Blobs) patch(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	blob, err := named(param)
	if err != nil {
		return err
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != typeOffset {
		return problem.OfStatus(http.StatusUnsupportedMediaType, "Content-Type must be "+typeOffset)
	}
	from, err := number(r.Header, headerOffset)
	if err != nil {
		return err
	}
	leave, err := b.Writing.Enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	u, err := b.Uploads.Resume(user(r), blob)
	if err != nil {
		return b.ended(w, r, blob, from, err)
	}
	defer u.Release()
	p, err := b.Broker.BeginBlob(user(r), blob)
	if err != nil {
		return b.refused(u, err)
	}
	offset, err := b.write(w, r, u, p, from)
	if err = errors.Join(err, p.Close()); err != nil {
		return b.refused(u, err)
	}
	if offset == blob.Size {
		u.End()
	}
	w.Header().Set(headerOffset, strconv.FormatInt(offset, 10))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// write takes the body, if it begins where the upload goes on.
func (b *Blobs) write(
	w http.ResponseWriter, r *http.Request, u *uploads.Upload, p node.PartialBlob, from int64,
) (int64, error) {
	offset, err := u.Offset(p)
	if err != nil {
		return 0, err
	}
	if offset != from {
		return 0, wrongOffset(offset)
	}
	body, err := b.Bodies.Stream(w, r, p.Size()-offset,
		problem.OfStatus(http.StatusRequestEntityTooLarge, "the body goes beyond Upload-Length"))
	if err != nil {
		return 0, err
	}
	defer body.Close(w)
	offset, err = u.Write(p, body)
	if failed := body.Failed(); failed != nil {
		return offset, failed
	}
	if err == nil { // the end, which has not been asked for if the blob is whole
		_, _ = body.Read(make([]byte, 1))
	}
	return offset, err
}

// ended answers who writes an upload that is over: one that is whole has its offset at its end.
func (b *Blobs) ended(w http.ResponseWriter, r *http.Request, blob files.Blob, from int64, why error) error {
	whole, err := b.whole(r, blob)
	switch {
	case err != nil:
		return err
	case !whole || !errors.Is(why, uploads.ErrUnknown):
		return why
	case from != blob.Size || r.ContentLength > 0:
		return wrongOffset(blob.Size)
	}
	w.Header().Set(headerOffset, strconv.FormatInt(blob.Size, 10))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func wrongOffset(offset int64) error {
	return problem.New(http.StatusConflict, "wrong-offset", "The upload goes on elsewhere",
		headerOffset+" must be "+strconv.FormatInt(offset, 10)+": ask by HEAD where it goes on")
}

func (b *Blobs) terminate(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	blob, err := named(param)
	if err != nil {
		return err
	}
	u, err := b.Uploads.Resume(user(r), blob)
	if err != nil {
		return err
	}
	defer u.Release()
	p, err := b.Broker.BeginBlob(user(r), blob)
	if err != nil {
		return err
	}
	if err = errors.Join(p.Abandon(), p.Close()); err != nil {
		return err
	}
	u.End()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

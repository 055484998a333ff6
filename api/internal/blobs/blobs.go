// Package blobs takes files from users into their own place in the site's store: small ones whole, large ones in pieces
// that are resumed (tus 1.0), and what stands behind URLs. It knows no jobs.
package blobs

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/served"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/imports"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/files/uploads"
)

// maxAsked is how many blobs one question names, and MaxWhole how many bytes a blob may have that is sent whole.
const (
	maxAsked = 1000
	MaxWhole = files.PieceBytes
)

// Config of Blobs; all fields but Uploads are required.
type Config struct {
	Broker  source.Files
	API     *rest.API
	Bodies  *transport.Bodies
	Uploads *uploads.Uploads // nil: large files are not taken
	Imports imports.Config   // without its Store
	// Sending has a place for each blob that is sent whole, Writing for each piece that is in memory, and Taking for
	// each that is taken.
	Sending, Writing, Taking *transport.Places
}

// Blobs answers for one broker.
type Blobs struct {
	Config
	imports *imports.Imports
}

// New makes Blobs; Register adds their operations to the API, and Close ends what goes on.
func New(c Config) *Blobs {
	c.Imports.Store = place{c.Broker}
	return &Blobs{c, imports.New(c.Imports)}
}

// Close ends imports.
func (b *Blobs) Close() { b.imports.Close() }

// Register adds the operations.
func (b *Blobs) Register() {
	hash := rest.PathParam("sha256", "64 digits of 0-9a-f, as sha256sum prints them")
	b.API.Handle(huma.Operation{
		OperationID: "missing-blobs", Method: http.MethodPost, Path: "/v1/blobs/missing", Summary: "Which of some files are still to be sent",
		Description: "A blob is a file's bytes, named by their SHA-256. Users have blobs of their own; those that are asked for and there stay for 24 hours from now on (`data.keep_unnamed`).",
		RequestBody: rest.Body(wire.TypeJSON, b.API.Schema(wire.BlobHashes{})),
		Responses: b.API.Responses(http.StatusOK, wire.TypeJSON, b.API.Schema(wire.MissingBlobs{}), 400, 403, 413, 415,
			422, 503),
	}, b.missing)
	whole := b.API.Responses(http.StatusOK, wire.TypeJSON, b.API.Schema(wire.Blob{}), 400, 403, 408, 413, 422, 503)
	whole["201"] = b.API.Responses(http.StatusCreated, wire.TypeJSON, b.API.Schema(wire.Blob{}))["201"]
	b.API.Handle(huma.Operation{
		OperationID: "put-blob", Method: http.MethodPut, Path: "/v1/blobs/{sha256}", Summary: "Send a file of at most 8 MiB whole",
		Description: "201: it is new; 200: it was there. The body is the file's bytes, whatever its type. It stays for 24 hours (`data.keep_unnamed`), and while a job that names it is kept.",
		Parameters:  []*huma.Param{hash},
		RequestBody: rest.Body("application/octet-stream", rest.Binary()),
		Responses:   whole,
	}, b.put)
	b.API.Handle(huma.Operation{
		OperationID: "blob", Method: http.MethodGet, Path: "/v1/blobs/{sha256}", Summary: "A file that the user has sent",
		Description: "As an attachment, and in ranges if asked for: those are not checked by the hash, the whole is, and breaks off before its end if it is damaged.",
		Parameters:  []*huma.Param{hash},
		Responses:   b.API.Responses(http.StatusOK, "application/octet-stream", rest.Binary(), 400, 404, 410, 503),
	}, b.get)
	b.registerUploads()
	b.registerImports()
}

// user returns whose place a request is about.
func user(r *http.Request) string { return node.AskerOf(r.Context()).User }

// hashOf returns the hash in a path.
func hashOf(param func(string) string) (files.Hash, error) {
	h, err := files.ParseHash(param("sha256"))
	if err != nil {
		return h, problem.BadQuery("sha256", param("sha256"), err.Error())
	}
	return h, nil
}

func (b *Blobs) missing(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	var in wire.BlobHashes
	if err := rest.ReadObject(w, r, b.Bodies, &in); err != nil {
		return err
	}
	if len(in.SHA256) == 0 || len(in.SHA256) > maxAsked {
		return problem.BadField("sha256", "", "must name 1 to 1000 blobs")
	}
	hashes := make([]files.Hash, len(in.SHA256))
	for i, text := range in.SHA256 {
		var err error
		if hashes[i], err = files.ParseHash(text); err != nil {
			return problem.BadField("sha256", text, err.Error())
		}
	}
	missing, err := b.Broker.MissingBlobs(user(r), hashes)
	if err != nil {
		return err
	}
	out := wire.MissingBlobs{Missing: make([]string, 0, len(missing))}
	for _, h := range missing {
		out.Missing = append(out.Missing, h.String())
	}
	return rest.WriteJSON(w, http.StatusOK, out)
}

// tooLargeWhole refuses what is to be sent in pieces.
func tooLargeWhole() error {
	return problem.OfStatus(http.StatusRequestEntityTooLarge, "a file that is sent whole may have 8 MiB: send it by POST /v1/uploads")
}

func (b *Blobs) put(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	want, err := hashOf(param)
	if err != nil {
		return err
	}
	leave, err := b.Sending.Enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	missing, err := b.Broker.MissingBlobs(user(r), []files.Hash{want})
	if err != nil {
		return err
	}
	body, err := b.Bodies.Stream(w, r, MaxWhole, tooLargeWhole())
	if err != nil {
		return err
	}
	got, err := b.Broker.PutBlob(r.Context(), user(r), newMatching(body, want), MaxWhole)
	body.Close(w)
	if failed := body.Failed(); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if len(missing) == 0 {
		status = http.StatusOK
	}
	return rest.WriteJSON(w, status, blobOf(got))
}

func blobOf(b files.Blob) wire.Blob { return wire.Blob{SHA256: b.Hash.String(), Size: b.Size} }

func (b *Blobs) get(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	h, err := hashOf(param)
	if err != nil {
		return err
	}
	leave, err := b.Taking.Enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	blob, err := b.Broker.OpenBlob(user(r), h)
	if errors.Is(err, store.ErrUnknown) {
		return problem.New(http.StatusNotFound, problem.UnknownBlob, "The blob is not in the store", "you have none of this SHA-256 here: it was not sent, or its time is over")
	}
	if err != nil {
		return err
	}
	defer blob.Close()
	served.File(w, r, h.String(), h, blob)
	return nil
}

// place is where imports go.
type place struct{ source.Files }

// Put implements imports.Store.
func (p place) Put(ctx context.Context, user string, r io.Reader, limit int64) (files.Blob, error) {
	return p.PutBlob(ctx, user, r, limit)
}

// Find implements imports.Store.
func (p place) Find(user string, h files.Hash) (files.Blob, bool) {
	blob, there, err := p.look(user, h)
	return blob, there && err == nil
}

// look returns a user's blob if it is there and can be read; the error is that of asking.
func (p place) look(user string, h files.Hash) (files.Blob, bool, error) {
	missing, err := p.MissingBlobs(user, []files.Hash{h})
	if err != nil || len(missing) > 0 {
		return files.Blob{}, false, err
	}
	blob, err := p.OpenBlob(user, h)
	if err != nil {
		return files.Blob{}, false, nil //nolint:nilerr // it is to be sent again
	}
	return files.Blob{Hash: h, Size: blob.Size()}, blob.Close() == nil, nil
}

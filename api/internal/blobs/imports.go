package blobs

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// importRetry is after how many seconds to ask again how far an import is.
const importRetry = 2

func (b *Blobs) registerImports() {
	answers := b.API.Responses(http.StatusOK, wire.TypeJSON, b.API.Schema(wire.Blob{}), 400, 403, 413, 415, 422, 503)
	answers["202"] = b.API.Responses(http.StatusAccepted, wire.TypeJSON, b.API.Schema(wire.Importing{}))["202"]
	b.API.Handle(huma.Operation{
		OperationID: "import", Method: http.MethodPost, Path: "/v1/imports", Summary: "Have the broker fetch a file from a URL",
		Description: "200: it is in the user's place; 202: it is on its way: send the same again to see how far it is. By https, from hosts and (s3://) buckets that the site's operator allows. An object that changes while it is read is not taken. A job whose inputs " +
			"name a URL begins its import, too, and is answered 503 import-under-way until that has ended.",
		RequestBody: rest.Body(wire.TypeJSON, b.API.Schema(wire.ImportRequest{})),
		Responses:   answers,
	}, b.fetch)
}

func (b *Blobs) fetch(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	var in wire.ImportRequest
	if err := rest.ReadObject(w, r, b.Bodies, &in); err != nil {
		return err
	}
	if in.URL == "" {
		return problem.BadField("url", "", "is needed")
	}
	var want files.Hash
	if in.SHA256 != "" {
		var err error
		if want, err = files.ParseHash(in.SHA256); err != nil {
			return problem.BadField("sha256", in.SHA256, err.Error())
		}
	}
	state, err := b.imports.Import(user(r), in.URL, want)
	if err != nil {
		return err
	}
	if !state.Done {
		w.Header().Set("Retry-After", fmt.Sprint(importRetry))
		return rest.WriteJSON(w, http.StatusAccepted, wire.Importing{Received: state.Received, Size: state.Size})
	}
	return rest.WriteJSON(w, http.StatusOK, blobOf(state.Blob))
}

// Resolve fills in what stands behind the URLs of a job's inputs, for the user who asks. While one is on its way it
// returns the problem to answer with; all of them are begun first.
func (b *Blobs) Resolve(ctx context.Context, spec *jobspec.Spec) error {
	var waits error
	for i := range spec.Inputs {
		in := &spec.Inputs[i]
		if in.From != jobspec.FromURL {
			continue
		}
		state, err := b.imports.Import(node.AskerOf(ctx).User, in.URL, in.Blob.Hash)
		if err != nil {
			return fmt.Errorf("inputs.%d.url: %w", i, err)
		}
		switch {
		case state.Done:
			in.Blob = state.Blob
		case waits == nil:
			waits = underWay(i, state.Received, state.Size)
		}
	}
	return waits
}

func underWay(i int, received, size int64) error {
	field := fmt.Sprintf("inputs.%d.url", i)
	far := fmt.Sprintf("%d bytes have come", received)
	if size >= 0 {
		far = fmt.Sprintf("%d of %d bytes have come", received, size)
	}
	p := problem.New(http.StatusServiceUnavailable, "import-under-way", "A file is being fetched from its URL",
		fmt.Sprintf("%s: %s: send the same request again", field, far))
	p.RetryAfter, p.Field = importRetry, field
	return p
}

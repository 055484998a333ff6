package blobs

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/node/files"
)

// Words of the upload protocol, https://tus.io/protocols/resumable-upload, as net/http keeps names of headers.
const (
	tusVersion      = "1.0.0"
	headerResumable = "Tus-Resumable"
	headerVersion   = "Tus-Version"
	headerOffset    = "Upload-Offset"
	headerLength    = "Upload-Length"
	headerMetadata  = "Upload-Metadata"
	typeOffset      = "application/offset+octet-stream"
	extensions      = "creation,termination"
)

// maxMetadata bounds a header, in bytes: clients add names and types of files.
const maxMetadata = 8 << 10

// uploadOf returns what is to be uploaded.
func uploadOf(h http.Header) (b files.Blob, err error) {
	if len(h.Values("Upload-Defer-Length")) > 0 {
		return b, problem.BadQuery("Upload-Defer-Length", "", "is not spoken: say Upload-Length")
	}
	if b.Size, err = number(h, headerLength); err != nil {
		return b, err
	}
	if err = b.Check(); err != nil {
		return b, err
	}
	text, err := metadata(h, "sha256")
	if err != nil {
		return b, err
	}
	if b.Hash, err = files.ParseHash(text); err != nil {
		return b, problem.BadQuery(headerMetadata, text, "sha256: "+err.Error())
	}
	return b, nil
}

// number reads a header with a number of bytes: digits alone, once.
func number(h http.Header, name string) (int64, error) {
	values := h.Values(name)
	if len(values) != 1 {
		return 0, problem.BadQuery(name, "", "must stand once")
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != values[0] {
		return 0, problem.BadQuery(name, values[0], "must be a number of bytes, in digits")
	}
	return n, nil
}

// metadata returns the value of a key in Upload-Metadata: pairs parted by commas, each a key and, behind a blank, a
// value in base64. Other keys are passed over, but checked.
func metadata(h http.Header, key string) (value string, err error) {
	values := h.Values(headerMetadata)
	if len(values) != 1 || len(values[0]) > maxMetadata {
		return "", problem.BadQuery(headerMetadata, "", fmt.Sprintf("must stand once, with at most %d bytes", maxMetadata))
	}
	found := false
	for pair := range strings.SplitSeq(values[0], ",") {
		name, packed, _ := strings.Cut(strings.TrimSpace(pair), " ")
		content, err := base64.StdEncoding.Strict().DecodeString(packed)
		switch {
		case name == "" || err != nil:
			return "", problem.BadQuery(headerMetadata, pair, "must be pairs of a key and a value in base64, parted by commas")
		case name == key && found:
			return "", problem.BadQuery(headerMetadata, "", key+" stands twice")
		case name == key:
			value, found = string(content), true
		}
	}
	if !found {
		return "", problem.BadQuery(headerMetadata, "", "must have "+key+", the file's, in base64 as all values")
	}
	return value, nil
}

// headerParam documents a header that a request must have.
func headerParam(name, doc string) *huma.Param {
	p := rest.PathParam(name, doc)
	p.In = "header"
	return p
}

// answered documents an answer without a body.
func (b *Blobs) answered(ok int, headers map[string]string, problems ...int) map[string]*huma.Response {
	out := b.API.Responses(ok, "", nil, problems...)
	answer := out[strconv.Itoa(ok)]
	answer.Content = nil
	text := &huma.Schema{Type: huma.TypeString}
	own := map[string]*huma.Param{headerResumable: {Schema: text, Description: tusVersion}}
	for name, h := range answer.Headers {
		own[name] = h
	}
	for name, doc := range headers {
		own[name] = &huma.Param{Schema: text, Description: doc}
	}
	answer.Headers = own
	return out
}

// registerUploads adds the operations of the upload protocol.
func (b *Blobs) registerUploads() {
	resumable := headerParam(headerResumable, tusVersion)
	upload := rest.PathParam("upload", "SHA256-SIZE, as Location has it")
	const offset, length = "where the upload goes on: so many bytes are there", "bytes in all"
	b.API.Handle(huma.Operation{
		OperationID: "upload-options", Method: http.MethodOptions, Path: "/v1/uploads", Summary: "What of the upload protocol is spoken",
		Responses: b.answered(http.StatusNoContent, map[string]string{
			headerVersion: tusVersion, "Tus-Extension": extensions, "Tus-Max-Size": "bytes",
		}),
	}, b.options)
	b.API.Handle(huma.Operation{
		OperationID: "upload-begin", Method: http.MethodPost, Path: "/v1/uploads", Summary: "Begin or resume the upload of a large file",
		Description: "By tus 1.0 (core, creation, termination). Whoever begins the upload of the same file again goes on where it was; of one that is there the offset is its length. " +
			"An upload that nobody writes for 24 hours goes; so does the file, then, unless a job names it.",
		Parameters: []*huma.Param{
			resumable, headerParam(headerLength, length+", at most 1 TiB"),
			headerParam(headerMetadata, "must have sha256, the file's in hex, in base64 as all values; other keys are passed over"),
		},
		Responses: b.answered(http.StatusCreated, map[string]string{"Location": "of the upload", headerOffset: offset}, 400, 403,
			412, 413, 422, 423, 429, 503),
	}, b.versioned(b.create))
	b.API.Handle(huma.Operation{
		OperationID: "upload-offset", Method: http.MethodHead, Path: "/v1/uploads/{upload}", Summary: "Where an upload goes on",
		Parameters: []*huma.Param{resumable, upload},
		Responses: b.answered(http.StatusOK, map[string]string{headerOffset: offset, headerLength: length}, 404, 412,
			423, 429, 503),
	}, b.versioned(b.head))
	b.API.Handle(huma.Operation{
		OperationID: "upload-write", Method: http.MethodPatch, Path: "/v1/uploads/{upload}", Summary: "Send what comes next of an upload",
		Description: "Any number of bytes. What has come stays when the connection is cut or the broker is started again. With the last byte the file is checked: if it has another hash the upload is gone (422 wrong-hash).",
		Parameters:  []*huma.Param{resumable, upload, headerParam(headerOffset, "where the body begins: where the upload goes on, else 409")},
		RequestBody: rest.Body(typeOffset, rest.Binary()),
		Responses: b.answered(http.StatusNoContent, map[string]string{headerOffset: offset}, 400, 403, 404, 408, 409,
			412, 413, 415, 422, 423, 429, 503),
	}, b.versioned(b.patch))
	b.API.Handle(huma.Operation{
		OperationID: "upload-end", Method: http.MethodDelete, Path: "/v1/uploads/{upload}", Summary: "Give an unfinished upload up",
		Parameters: []*huma.Param{resumable, upload},
		Responses:  b.answered(http.StatusNoContent, nil, 403, 404, 412, 423, 503),
	}, b.versioned(b.terminate))
}

package rest

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", wire.TypeJSON)
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the header is out and the client may be gone
	return nil
}

// MediaType returns which of known the request's body is. A missing type is
// the first: curl users forget it, and the parser is strict anyway.
func MediaType(r *http.Request, known ...string) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return known[0], nil
	}
	kind, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err != nil || !slices.Contains(known, kind) || charset != "" && charset != "utf-8" {
		return "", problem.OfStatus(http.StatusUnsupportedMediaType,
			fmt.Sprintf("Content-Type is %q; send %s in UTF-8", problem.OneLine(header), strings.Join(known, " or ")))
	}
	return kind, nil
}

// ContentType refuses a body that is not of the known type.
func ContentType(r *http.Request, known string) error {
	_, err := MediaType(r, known)
	return err
}

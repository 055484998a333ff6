package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

// maxKey bounds an idempotency key, in bytes.
const maxKey = 255

// KeyParam documents the header that IdempotencyKey reads.
func KeyParam(doc string) *huma.Param {
	return &huma.Param{Name: wire.HeaderKey, In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: doc}
}

// IdempotencyKey reads the header that names a submission, "" without it: at most maxKey printable ASCII bytes.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(wire.HeaderKey)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	printable := !strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKey || !printable {
		return "", problem.BadQuery(wire.HeaderKey, "", fmt.Sprintf("must be given once, with 1 to %d printable ASCII characters", maxKey))
	}
	return key, nil
}

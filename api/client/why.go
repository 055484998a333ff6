package client

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Why asks why a job waits, and when it will start.
func (c *Client) Why(ctx context.Context, id string) (wire.Why, error) {
	return watched[wire.Why](ctx, c, jobPath(id)+"/why", nil)
}

// DryRun asks what would become of a job if it were submitted now; nothing is
// accepted. An idempotency key plays no part.
func (c *Client) DryRun(ctx context.Context, spec []byte, o SubmitOptions) (wire.Why, error) {
	query := url.Values{"dry_run": {"true"}}
	if o.Strict {
		query.Set("strict", "true")
	}
	out, _, err := get[wire.Why](ctx, c, http.MethodPost, "/v1/jobs", query, bytes.NewReader(spec),
		http.Header{"Content-Type": {wire.TypeJSON}})
	return out, err
}

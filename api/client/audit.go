package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Audit lists the newest requests that changed something at the broker's site, newest first: of a user, or about a job
// or another name, who; "" = all.
func (c *Client) Audit(ctx context.Context, who string, limit int) (wire.List[wire.AuditEntry], error) {
	v := url.Values{"limit": {strconv.Itoa(limit)}}
	if who != "" {
		v.Set("who", who)
	}
	out, _, err := get[wire.List[wire.AuditEntry]](ctx, c, http.MethodGet, "/v1/audit", v, nil, nil)
	return out, err
}

package client

import (
	"context"
	"net/http"

	"github.com/cloudshare/cloudshare/api/wire"
)

// JobUsage sums up what a job's ended attempts have used, of the broker's archive.
func (c *Client) JobUsage(ctx context.Context, id string) (wire.JobUsage, error) {
	u, _, err := get[wire.JobUsage](ctx, c, http.MethodGet, jobPath(id)+"/usage", nil, nil, nil)
	return u, err
}

package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cloudshare/cloudshare/api/wire"
)

// UserQuotas lists what the users of the broker's site use of their quotas: all to the operator, to a user the own.
func (c *Client) UserQuotas(ctx context.Context) (wire.List[wire.UserQuota], error) {
	out, _, err := get[wire.List[wire.UserQuota]](ctx, c, http.MethodGet, "/v1/quotas", nil, nil, nil)
	return out, err
}

// SetUserQuotas changes the quotas of a user of the broker's site, or of "*": all that have none of their own.
func (c *Client) SetUserQuotas(ctx context.Context, user string, in wire.UserLimitsRequest) (wire.UserQuota, error) {
	return put[wire.UserQuota](ctx, c, "/v1/quotas/"+url.PathEscape(user), in)
}

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Members lists who the members of the federation are, by admission.
func (c *Client) Members(ctx context.Context) (wire.List[wire.Member], error) {
	return watched[wire.List[wire.Member]](ctx, c, "/v1/members", nil)
}

// Invitations lists those that are kept, the oldest first.
func (c *Client) Invitations(ctx context.Context) (wire.List[wire.Invitation], error) {
	return watched[wire.List[wire.Invitation]](ctx, c, "/v1/invitations", nil)
}

// Motions lists what the electors decide or have decided, the oldest first; state "" selects all.
func (c *Client) Motions(ctx context.Context, state string) (wire.List[wire.Motion], error) {
	return watched[wire.List[wire.Motion]](ctx, c, "/v1/motions", values("state", state))
}

// Invite invites a site. The answer's Token is a secret, and told only here.
func (c *Client) Invite(ctx context.Context, in wire.InviteRequest) (wire.Invited, error) {
	return post[wire.Invited](ctx, c, "/v1/invitations", in)
}

// Revoke ends the open invitations of a site, and returns them.
func (c *Client) Revoke(ctx context.Context, site string) (wire.List[wire.Invitation], error) {
	out, _, err := get[wire.List[wire.Invitation]](ctx, c, http.MethodDelete, "/v1/invitations/"+url.PathEscape(site), nil, nil,
		nil)
	return out, err
}

// Propose makes a motion of the broker's site, and returns it as it stands then: it may have passed.
func (c *Client) Propose(ctx context.Context, in wire.MotionRequest) (wire.Motion, error) {
	return post[wire.Motion](ctx, c, "/v1/motions", in)
}

// Vote casts the vote of the broker's site on a motion, named by its number or by the site that no other open one is
// about, and returns it as it stands then.
func (c *Client) Vote(ctx context.Context, motion string, yes bool) (wire.Motion, error) {
	return put[wire.Motion](ctx, c, "/v1/motions/"+url.PathEscape(motion)+"/vote", wire.VoteRequest{Yes: &yes})
}

// ReplaceKey passes on the signed replacement of a site's key, and returns the site as it is then.
func (c *Client) ReplaceKey(ctx context.Context, site string, rekey []byte) (wire.Member, error) {
	return post[wire.Member](ctx, c, "/v1/members/"+url.PathEscape(site)+"/key", wire.KeyRequest{Rekey: rekey})
}

// put puts a JSON body.
func put[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	text, err := json.Marshal(body)
	if err != nil {
		var none T
		return none, fmt.Errorf("encode request: %w", err)
	}
	out, _, err := get[T](ctx, c, http.MethodPut, path, nil, bytes.NewReader(text), http.Header{"Content-Type": {wire.TypeJSON}})
	return out, err
}

// MotionName names a motion by its number.
func MotionName(number uint64) string { return strconv.FormatUint(number, 10) }

package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Whoami says who asks, as the broker sees it.
func (c *Client) Whoami(ctx context.Context) (wire.Whoami, error) {
	return plain[wire.Whoami](ctx, c, "/v1/whoami", nil)
}

// Tokens lists the tokens of the broker's site, also expired ones, the oldest first.
func (c *Client) Tokens(ctx context.Context) (wire.List[wire.Token], error) {
	return plain[wire.List[wire.Token]](ctx, c, "/v1/tokens", nil)
}

// CreateToken makes a token. The answer's Text is a secret, and told only here.
func (c *Client) CreateToken(ctx context.Context, in wire.TokenRequest) (wire.NewToken, error) {
	return post[wire.NewToken](ctx, c, "/v1/tokens", in)
}

// RevokeToken has a token refused from now on.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	res, err := c.do(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(id), nil, nil, nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

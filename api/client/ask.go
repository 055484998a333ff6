package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Ask sends any request; the caller closes the answer's body. An answer from 400 on is a *Problem. path is escaped. A
// body that can be read again, as a *bytes.Reader's, is sent again with the next token if the first one is refused.
func (c *Client) Ask(
	ctx context.Context, method, path string, query url.Values, body io.Reader, header http.Header,
) (*http.Response, error) {
	return c.do(ctx, method, path, query, body, header)
}

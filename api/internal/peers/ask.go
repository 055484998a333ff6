package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// Ask puts a question of this broker's own to another one, after so many hops,
// and makes sure that it is the one that answers. u needs no scheme and host. The
// error says what was tried.
func (c *Client) Ask(ctx context.Context, method string, at *node.ElsewhereError, u url.URL, hops int,
	header http.Header,
) (*http.Response, error) {
	if at.Peer == "" {
		return nil, errors.New("its address is not known")
	}
	u.Scheme, u.Host = "http", hostOf(at)
	req, err := http.NewRequestWithContext(meaning(ctx, at), method, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("its name %.63q is malformed", at.Site)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Host = at.Site
	req.Header.Set(wire.HeaderHops, strconv.Itoa(hops))
	req.Header.Set(wire.HeaderMeans, c.means(at.Site))
	res, err := c.transport.RoundTrip(req)
	if err == nil {
		if err = answersAs(res, at.Site); err != nil {
			_ = res.Body.Close()
		}
	}
	if err != nil {
		return nil, errors.New(notReached(at, err))
	}
	return res, nil
}

// AskFor is Ask in the name of a client's request: what is no success is a
// *problem.Problem.
func (c *Client) AskFor(
	ctx context.Context, r *http.Request, at *node.ElsewhereError, u url.URL,
) (*http.Response, error) {
	if p := unasked(r, at); p != nil {
		return nil, p
	}
	res, err := c.Ask(ctx, r.Method, at, u, hops(r)+1, http.Header{wire.HeaderVia: {c.AskedAt(r)}})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, problem.Unreachable(at, err.Error())
	}
	if res.StatusCode < http.StatusBadRequest {
		return res, nil
	}
	defer res.Body.Close()
	var said wire.Problem
	if json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&said) == nil {
		if p := problem.Told(&said); p != nil {
			return nil, p
		}
	}
	return nil, problem.Unreachable(at, "its broker at "+at.Peer+" answers "+strconv.Itoa(res.StatusCode))
}

// unasked returns why a request is not passed on to another broker, or nil.
func unasked(r *http.Request, at *node.ElsewhereError) *problem.Problem {
	switch {
	case at.Peer == "":
		return problem.Unreachable(at, "its address is not known")
	case hops(r) >= MaxHops:
		return problem.Unreachable(at, "the request was passed on "+strconv.Itoa(MaxHops)+" times without finding it")
	}
	return nil
}

// AskSame is AskFor for the same path with another query, and reads the JSON
// answer.
func AskSame[T any](
	ctx context.Context, c *Client, r *http.Request, at *node.ElsewhereError, query url.Values,
) (out T, err error) {
	res, err := c.AskFor(ctx, r, at, url.URL{Path: r.URL.Path, RawQuery: query.Encode()})
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if json.NewDecoder(io.LimitReader(res.Body, MaxAnswer)).Decode(&out) != nil {
		return out, problem.Unreachable(at, "its broker at "+at.Peer+" broke off")
	}
	return out, nil
}

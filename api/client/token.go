package client

import (
	"io"
	"net/http"
	"time"
)

// TokenSource returns the token for the next request, "" = none is sent. refused is the one that the broker has just
// refused, "" = none was: another one may do. It may be called from several goroutines.
type TokenSource func(refused string) (string, error)

// WithToken returns a client that proves by a token of the broker's site who asks. It shares c's connections.
func (c *Client) WithToken(token string) *Client {
	if token == "" {
		return c.WithTokens(nil)
	}
	return c.WithTokens(func(string) (string, error) { return token, nil })
}

// WithTokens is WithToken with tokens that are renewed: each request asks the source for one, so that what goes on for
// longer than a token holds goes on with the next. An error of the source that is to pass wraps ErrTokenAway.
func (c *Client) WithTokens(source TokenSource) *Client {
	with := *c
	with.token = source
	return &with
}

// tokenError is an error of the source of tokens, not of the broker.
type tokenError struct{ error }

// Unwrap returns it.
func (e *tokenError) Unwrap() error { return e.error }

// withToken sends a request with a token, and with the next one if that is refused: a refused request was not executed.
// One whose body cannot be sent again is not.
func (c *Client) withToken(req *http.Request) (*http.Response, error) {
	token, err := c.nextToken("")
	if err != nil {
		return nil, err
	}
	for renewed := false; ; renewed = true {
		sent := time.Now()
		res, sendErr := c.http.Do(bearing(req, token))
		if sendErr != nil || res.StatusCode != http.StatusUnauthorized || renewed && time.Since(sent) < takenFor {
			return res, sendErr
		}
		if req = repeated(req); req == nil {
			return res, nil
		}
		next, failed := c.nextToken(token)
		if failed == nil && next == token {
			return res, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxRefusal)) // for the connection to be used again
		_ = res.Body.Close()
		if failed != nil {
			return nil, failed
		}
		token = next
	}
}

// takenFor is after what time a refusal says that the token was taken, and has ended since, as that of a read that
// waits: then there may be a next one again. A broker that takes none refuses at once, and is asked twice.
const takenFor = time.Second

// maxRefusal is how much of a refusal is read, in bytes.
const maxRefusal = 64 << 10

func (c *Client) nextToken(refused string) (string, error) {
	if c.token == nil {
		return "", nil
	}
	token, err := c.token(refused)
	if err != nil {
		return "", &tokenError{err}
	}
	return token, nil
}

func bearing(req *http.Request, token string) *http.Request {
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// repeated returns a request to send again, nil if its body has gone.
func repeated(req *http.Request) *http.Request {
	next := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return next
	}
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	next.Body = body
	return next
}

package carry

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// again is how long a client waits after an error, twice as long after each more in a row, up to maxErrors.
	again     = time.Second
	maxErrors = 5
	// settle is how long a handler may take to have on its disk what it was sent.
	settle = 5 * time.Minute
)

// Client is a pod's end, for one goroutine.
type Client struct {
	url            string
	attempt, token string
	http           *http.Client
	errors         int   // in a row
	why            error // the latest of them that is not the end of a context
}

// NewClient returns the client of an attempt for the holder of a key at url, which is http://HOST:PORT.
func NewClient(url string, key []byte, attempt, token string) *Client {
	return &Client{
		url: "https" + strings.TrimPrefix(strings.TrimRight(url, "/"), "http") + Root, attempt: attempt, token: token,
		http: &http.Client{
			// No proxy of the task's environment, and nothing that is sent elsewhere.
			Transport: &http.Transport{
				DialContext: (&net.Dialer{Timeout: stall}).DialContext, TLSClientConfig: pinned(key),
				TLSHandshakeTimeout: stall, ResponseHeaderTimeout: settle, MaxIdleConnsPerHost: 1,
				DisableCompression: true, MaxResponseHeaderBytes: maxLine,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// refused says that asking again leads nowhere.
type refused struct{ why string }

// Error implements error.
func (r *refused) Error() string { return r.why }

// call asks; the caller closes the body.
func (c *Client) call(
	ctx context.Context, method, what, run string, from int64, body io.Reader,
) (io.ReadCloser, error) {
	q := url.Values{"attempt": {c.attempt}, "run": {run}, "from": {strconv.FormatInt(from, 10)}}
	r, err := http.NewRequestWithContext(ctx, method, c.url+what+"?"+q.Encode(), body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		c.errors, c.why = 0, nil
		return res.Body, nil
	}
	defer res.Body.Close()
	words, _ := io.ReadAll(io.LimitReader(res.Body, maxWords))
	err = fmt.Errorf("%s answers %s: %.200q", c.url, res.Status, words)
	if res.StatusCode >= http.StatusBadRequest && res.StatusCode < http.StatusInternalServerError {
		err = &refused{err.Error()}
	}
	return nil, err
}

// pause waits a moment after an error, longer after each more in a row. When ctx ends it returns that, and the latest
// error that came of something else: a call that the end of ctx cut short does not say why the ones before it failed.
func (c *Client) pause(ctx context.Context, err error) error {
	if ctx.Err() == nil || c.why == nil {
		c.why = err
	}
	c.errors = min(c.errors+1, maxErrors)
	t := time.NewTimer(again << (c.errors - 1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), c.why)
	}
}

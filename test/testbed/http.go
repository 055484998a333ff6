package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// HTTPError is an answer that is not a success.
type HTTPError struct {
	Status  int
	Problem Problem
	Body    string
}

// Problem is an RFC 9457 problem.
type Problem struct {
	Type, Title, Detail string
	Status              int
}

// Error implements error.
func (e *HTTPError) Error() string {
	return fmt.Sprintf("HTTP %d: %s", e.Status, bytes.TrimSpace([]byte(e.Body)))
}

// client keeps enough idle connections for the benchmarks' 64 clients.
var client = &http.Client{
	Timeout: 2 * time.Minute,
	Transport: &http.Transport{
		MaxIdleConns: 512, MaxIdleConnsPerHost: 128, IdleConnTimeout: time.Minute,
	},
}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 256 << 20

// Do sends one request to the site and returns the answer's body. A status of
// 400 or more is an *HTTPError.
func (s *Site) Do(
	ctx context.Context, method, path string, header http.Header, body []byte,
) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("build request: %w", err)
	}
	if header != nil {
		req.Header = header.Clone()
	}
	s.Authorize(req.Header)
	c := s.HTTP
	if c == nil {
		c = client
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w", s.Name, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("read answer of %s: %w", s.Name, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		he := &HTTPError{Status: resp.StatusCode, Body: string(data)}
		_ = json.Unmarshal(data, &he.Problem) // a body of another form is shown as it is
		return nil, resp.Header, he
	}
	return data, resp.Header, nil
}

// get decodes the answer to a GET.
func get[T any](ctx context.Context, s *Site, path string) (T, error) {
	var v T
	data, _, err := s.Do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("decode %s of %s: %w", path, s.Name, err)
	}
	return v, nil
}

// Ready returns nil once the broker says that it is.
func (s *Site) Ready(ctx context.Context) error {
	_, _, err := s.Do(ctx, http.MethodGet, "/readyz", nil, nil)
	return err
}

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// apiVersion is spoken by Docker since 20.10 and by Podman since 3.4.
const apiVersion = "v1.41"

const (
	// maxAnswer bounds an answer that is read whole.
	maxAnswer = 16 << 20
	// maxMessage bounds an engine's words in an error.
	maxMessage = 500
)

// Errors of an engine; all of them name the call.
var (
	// ErrAway: there is no answer: what was asked may have happened.
	ErrAway = errors.New("container engine does not answer")
	// ErrNotFound: no such container or image.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the name is taken, or the container is in another state.
	ErrConflict = errors.New("conflict")
	// ErrRefused: the engine says no, for any other reason.
	ErrRefused = errors.New("refused by the container engine")
)

// Client talks to one engine. Safe for concurrent use.
type Client struct {
	socket string
	http   *http.Client
}

// New returns a client of the engine at "unix:///path"; nothing is dialled yet.
func New(address string) (*Client, error) {
	socket, ok := strings.CutPrefix(address, "unix://")
	if !ok || !strings.HasPrefix(socket, "/") {
		return nil, fmt.Errorf("container engine %q: must be unix:///path/of/its.sock", address)
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		MaxIdleConns: 32, MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}}, nil
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call sends one request and decodes the answer into out, unless it is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	body, err := c.open(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(body, maxAnswer))
	} else {
		err = json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("read answer to %s %s: %w: %w", method, path, ErrAway, err)
	}
	return nil
}

// open sends one request and returns the answer's body.
func (c *Client) open(ctx context.Context, method, path string, query url.Values, in any) (io.ReadCloser, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", path, err)
		}
		body = bytes.NewReader(b)
	}
	u := url.URL{Scheme: "http", Host: "engine", Path: "/" + apiVersion + path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w%s", ErrAway, c.socket, cause(err), remedy(err))
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp.Body, nil
}

// remedy returns what the operator can do about a socket that cannot be opened.
func remedy(err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Sprintf(": let the broker's user (uid %d) into the group of the socket", os.Getuid())
	case errors.Is(err, os.ErrNotExist):
		return ": start the engine, or name its socket in container.engine"
	}
	return ""
}

// cause drops the made-up address from an error of the HTTP client.
func cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// refusal returns the engine's own reason in one line.
func refusal(resp *http.Response) error {
	kind := ErrRefused
	switch resp.StatusCode {
	case http.StatusNotFound:
		kind = ErrNotFound
	case http.StatusConflict:
		kind = ErrConflict
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var said struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &said) != nil || said.Message == "" {
		said.Message = string(raw)
	}
	return &Refusal{kind: kind, Status: resp.StatusCode, Message: oneLine(said.Message)}
}

// Refusal is what an engine said instead of doing something.
type Refusal struct {
	kind    error
	Status  int // of HTTP; 0 = in the middle of a stream
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Unwrap says of which kind it is.
func (r *Refusal) Unwrap() error { return r.kind }

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	if s == "" {
		return "no reason given"
	}
	return s
}

// Package client is the Go client of a broker's HTTP API (step 1 of a job's
// way). It imports the wire forms and the standard library, never the server.
package client

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
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Problem is the API's answer to a request that it refuses or cannot serve. errors.As finds
// it in every error of this package that came from a broker.
type Problem = wire.Problem

// Errors of the client itself.
var (
	// ErrUnreachable: no broker answered at the address; whether the request
	// was executed is not known unless the connection was refused.
	ErrUnreachable = errors.New("no broker answers")
	// ErrBadAddr: the address is no http URL, host:port or unix:///PATH.
	ErrBadAddr = errors.New("bad address")
	// ErrTokenAway: the token has ended, and who renews it cannot be asked now; later it may be.
	ErrTokenAway = errors.New("the token cannot be renewed now")
	// ErrBrokeOff: an answer began, and did not come to its end.
	ErrBrokeOff = errors.New("broke off")
	// ErrBadAnswer: something that is no broker answered.
	ErrBadAnswer = errors.New("not a broker's answer")
)

// maxAnswer bounds an answer that is read into memory, in bytes.
const maxAnswer = 256 << 20

// Client asks one broker. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	addr  string // as people name it
	http  *http.Client
	token TokenSource // nil = none is sent
	watch *watch      // nil: reads are answered at once
	fresh *fresh      // nil: reads are answered however old
	sleep func(ctx context.Context, d time.Duration) error
}

// New returns a client of the broker at addr: an http or https URL, host:port, which is http, or unix:///PATH of a
// broker's api.sock, by which its site's operator needs no token. Of https, the system's authorities vouch for the
// broker unless an Option says otherwise.
func New(addr string, options ...Option) (*Client, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if path, local := strings.CutPrefix(addr, "unix://"); local {
		if path == "" {
			return nil, fmt.Errorf("%w: %.200q; use unix:///PATH of a broker's api.sock", ErrBadAddr, addr)
		}
		way := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
		return newClient(&url.URL{Scheme: "http", Host: "localhost"}, addr, way, nil), nil
	}
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%w: %.200q; use http://HOST:PORT or https://HOST:PORT", ErrBadAddr, addr)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return newClient(u, u.String(), dialer.DialContext, options), nil
}

// dial is a way to the broker, wherever its URL says that it is.
type dial func(ctx context.Context, network, addr string) (net.Conn, error)

// staySecured refuses to be led from HTTPS to plain HTTP: the token would go with it.
func staySecured(next *http.Request, via []*http.Request) error {
	switch {
	case via[0].URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("the broker leads to %s, in plain", next.URL.Redacted())
	case len(via) >= maxRedirects:
		return fmt.Errorf("the broker leads elsewhere %d times", len(via))
	}
	return nil
}

// maxRedirects bounds the redirections of one request: brokers need none.
const maxRedirects = 5

func newClient(base *url.URL, addr string, way dial, options []Option) *Client {
	c := &Client{base: base, addr: addr, http: &http.Client{Transport: &http.Transport{
		DialContext: way, MaxIdleConnsPerHost: 128, IdleConnTimeout: time.Minute, DisableCompression: true,
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
	}, CheckRedirect: staySecured}, sleep: sleep}
	for _, option := range options {
		option(c)
	}
	return c
}

// Addr returns the broker's base URL.
func (c *Client) Addr() string { return c.addr }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get asks for any path, and returns the answer whatever its status; the caller closes its body.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	return c.send(ctx, http.MethodGet, path, query, nil, nil)
}

// do sends a request; an answer from 400 on becomes a *Problem.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader,
	header http.Header,
) (*http.Response, error) {
	res, err := c.send(ctx, method, path, query, body, header)
	if err != nil || res.StatusCode < 400 {
		return res, err
	}
	defer res.Body.Close()
	return nil, problemIn(res)
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body io.Reader,
	header http.Header,
) (*http.Response, error) {
	u := *c.base
	u.RawPath = u.EscapedPath() + path // path is escaped
	var err error
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadAddr, err)
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadAddr, err)
	}
	if part, ok := body.(*io.SectionReader); ok { // of a file: it can be sent again, and has a length
		req.ContentLength = part.Size()
		req.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(part, 0, part.Size())), nil
		}
	}
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := c.withToken(req)
	if errors.As(err, new(*tokenError)) {
		return nil, err
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w at %s: %w", ErrUnreachable, c.addr, explained(cause(err)))
	}
	return res, nil
}

// cause drops the URL that net/http puts before its errors.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// problemIn reads a refusal.
func problemIn(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	p := new(Problem)
	if err != nil || json.Unmarshal(text, p) != nil || p.Status == 0 {
		return fmt.Errorf("%w: %s", ErrBadAnswer, res.Status)
	}
	return p
}

// get reads one JSON answer.
func get[T any](ctx context.Context, c *Client, method, path string, query url.Values, body io.Reader,
	header http.Header,
) (T, *http.Response, error) {
	var out T
	res, err := c.do(ctx, method, path, query, body, header)
	if err != nil {
		return out, nil, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&out); err != nil {
		if ctx.Err() != nil {
			return out, nil, ctx.Err()
		}
		return out, nil, fmt.Errorf("%w: %s %s: %w", ErrBadAnswer, method, path, err)
	}
	return out, res, nil
}

// SubmitOptions of a submission.
type SubmitOptions struct {
	Key    string // idempotency key, "" for none
	Strict bool   // refuse what no present site could run
}

func (o SubmitOptions) query() url.Values {
	if o.Strict {
		return url.Values{"strict": {"true"}}
	}
	return nil
}

func (o SubmitOptions) header(kind string) http.Header {
	h := http.Header{"Content-Type": {kind}}
	if o.Key != "" {
		h[wire.HeaderKey] = []string{o.Key}
	}
	return h
}

// Accepted answers a submission.
type Accepted struct {
	wire.Accepted
	Replayed bool // it is the answer of an earlier one
}

// Submit submits one job, given as its JSON text so that nothing of it is lost
// or added on the way.
func (c *Client) Submit(ctx context.Context, spec []byte, o SubmitOptions) (Accepted, error) {
	a, res, err := get[wire.Accepted](ctx, c, http.MethodPost, "/v1/jobs", o.query(), bytes.NewReader(spec),
		o.header(wire.TypeJSON))
	if err != nil {
		return Accepted{}, err
	}
	return Accepted{a, res.Header.Get(wire.HeaderReplayed) == "true"}, nil
}

// Result is the answer to one line of SubmitMany: one of the two.
type Result struct {
	Accepted *wire.Accepted
	Problem  *Problem
}

// SubmitMany submits a job for each line and calls each for every result, in
// order, while lines are still sent. It ends at the first error of each.
func (c *Client) SubmitMany(ctx context.Context, lines io.Reader, o SubmitOptions, each func(Result) error) error {
	res, err := c.do(ctx, http.MethodPost, "/v1/jobs", o.query(), lines, o.header(wire.TypeNDJSON))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for dec := json.NewDecoder(res.Body); ; {
		var both struct {
			wire.Accepted
			Problem
		}
		err := dec.Decode(&both)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: result line: %w", ErrBadAnswer, err)
		}
		result := Result{Accepted: &both.Accepted}
		if both.Type != "" {
			result = Result{Problem: &both.Problem}
		}
		if err := each(result); err != nil {
			return err
		}
	}
}

// Job asks for one job.
func (c *Client) Job(ctx context.Context, id string) (wire.Job, error) {
	return watched[wire.Job](ctx, c, jobPath(id), nil)
}

// Cancel asks to end a job, and returns it as it then is.
func (c *Client) Cancel(ctx context.Context, id string) (wire.Job, error) {
	job, _, err := get[wire.Job](ctx, c, http.MethodDelete, jobPath(id), nil, nil, nil)
	return job, err
}

// SetHold begins no more tasks of a job, or lets them begin again.
func (c *Client) SetHold(ctx context.Context, id string, hold bool) (wire.Job, error) {
	what := "/release"
	if hold {
		what = "/hold"
	}
	job, _, err := get[wire.Job](ctx, c, http.MethodPost, jobPath(id)+what, nil, nil, nil)
	return job, err
}

// SetPriority gives a job another priority, and returns it as it then is: higher first, among its owner's own jobs.
func (c *Client) SetPriority(ctx context.Context, id string, priority int32) (wire.Job, error) {
	v := url.Values{"priority": {strconv.Itoa(int(priority))}}
	job, _, err := get[wire.Job](ctx, c, http.MethodPost, jobPath(id)+"/priority", v, nil, nil)
	return job, err
}

// JobQuery selects jobs; zero fields select all.
type JobQuery struct {
	State, Site string
	Labels      []string // KEY=VALUE
	Name        string   // a part of the name, whatever its case
	User        string   // of the broker's site
	Limit       int
	Cursor      string
}

// Jobs lists jobs, newest first.
func (c *Client) Jobs(ctx context.Context, q JobQuery) (wire.List[wire.Job], error) {
	v := values("state", q.State, "site", q.Site, "name", q.Name, "user", q.User, "cursor", q.Cursor)
	if q.Limit > 0 {
		v.Set("limit", fmt.Sprint(q.Limit))
	}
	for _, l := range q.Labels {
		v.Add("label", l)
	}
	return watched[wire.List[wire.Job]](ctx, c, "/v1/jobs", v)
}

// Tasks lists the tasks of a job from a cursor on.
func (c *Client) Tasks(ctx context.Context, id string, limit int, cursor string) (wire.List[wire.Task], error) {
	return c.FindTasks(ctx, id, TaskQuery{Limit: limit, Cursor: cursor})
}

// TaskQuery selects tasks of a job; zero fields select all.
type TaskQuery struct {
	States []string
	Tasks  string // indices and ranges, such as "3,17,40-60"
	Limit  int
	Cursor string
}

// FindTasks lists those tasks of a job that a query selects. A page may hold fewer
// than the limit although there are more.
func (c *Client) FindTasks(ctx context.Context, id string, q TaskQuery) (wire.List[wire.Task], error) {
	v := values("cursor", q.Cursor, "tasks", q.Tasks)
	if q.Limit > 0 {
		v.Set("limit", fmt.Sprint(q.Limit))
	}
	if len(q.States) > 0 {
		v["state"] = q.States
	}
	return watched[wire.List[wire.Task]](ctx, c, jobPath(id)+"/tasks", v)
}

// LogQuery names one stream of one attempt; zero fields are the API's defaults.
type LogQuery struct {
	Task    uint32
	Attempt uint32
	Stream  string
	Follow  bool
	Tail    int // only so many last lines; 0 = all
}

// Logs reads a task's output; the caller closes it. A read error other than
// io.EOF means that the output is not whole.
func (c *Client) Logs(ctx context.Context, id string, q LogQuery) (io.ReadCloser, error) {
	v := values("stream", q.Stream)
	v.Set("task", fmt.Sprint(q.Task))
	if q.Attempt > 0 {
		v.Set("attempt", fmt.Sprint(q.Attempt))
	}
	if q.Follow {
		v.Set("follow", "true")
	}
	if q.Tail > 0 {
		v.Set("tail", fmt.Sprint(q.Tail))
	}
	res, err := c.do(ctx, http.MethodGet, jobPath(id)+"/logs", v, nil, nil)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// Sites lists the federation's sites.
func (c *Client) Sites(ctx context.Context) (wire.List[wire.Site], error) {
	return watched[wire.List[wire.Site]](ctx, c, "/v1/sites", nil)
}

// Queue lists what waits, per owner.
func (c *Client) Queue(ctx context.Context) (wire.List[wire.Queue], error) {
	return watched[wire.List[wire.Queue]](ctx, c, "/v1/queue", nil)
}

// Quotas lists what the broker's site uses of its quotas, or each site.
func (c *Client) Quotas(ctx context.Context, all bool) (wire.List[wire.SiteQuotas], error) {
	return watched[wire.List[wire.SiteQuotas]](ctx, c, "/v1/quota", url.Values{"all": {strconv.FormatBool(all)}})
}

// Ledger asks for the whole ledger.
func (c *Client) Ledger(ctx context.Context) (wire.Ledger, error) {
	return watched[wire.Ledger](ctx, c, "/v1/ledger", nil)
}

// Plausibility asks what stands out of what sites report and nobody can prove, as the broker has seen it.
func (c *Client) Plausibility(ctx context.Context) (wire.Plausibility, error) {
	return unwatched[wire.Plausibility](ctx, c, "/v1/plausibility")
}

// Policy asks for the federation's parameters.
func (c *Client) Policy(ctx context.Context) (wire.Policy, error) {
	return unwatched[wire.Policy](ctx, c, "/v1/policy")
}

// SetPolicy changes the fields given (by their JSON names) and returns all, with the motion for the change if it waits
// for the electors.
func (c *Client) SetPolicy(ctx context.Context, fields map[string]any) (wire.PolicySet, error) {
	return put[wire.PolicySet](ctx, c, "/v1/policy", fields)
}

// Drain has the broker's site take on nothing for others; with own, nothing for
// its own users either.
func (c *Client) Drain(ctx context.Context, own bool) (wire.Drain, error) {
	return post[wire.Drain](ctx, c, "/v1/drain", wire.DrainRequest{Own: own})
}

// Resume ends a drain.
func (c *Client) Resume(ctx context.Context) (wire.Drain, error) {
	return post[wire.Drain](ctx, c, "/v1/resume", struct{}{})
}

// Leave has the broker begin to take its site out of the federation. It drains
// for up to ten minutes first, not at all with now; then the site's state is
// "left" and the broker ends. With forget the site's waiting jobs end as lost.
func (c *Client) Leave(ctx context.Context, now, forget bool) (wire.Leaving, error) {
	return post[wire.Leaving](ctx, c, "/v1/leave", wire.LeaveRequest{Now: now, Forget: forget})
}

// post posts a JSON body.
func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	text, err := json.Marshal(body)
	if err != nil {
		var none T
		return none, fmt.Errorf("encode request: %w", err)
	}
	out, _, err := get[T](ctx, c, http.MethodPost, path, nil, bytes.NewReader(text), http.Header{"Content-Type": {wire.TypeJSON}})
	return out, err
}

// Status asks what the broker knows of itself; the state's hash takes time.
func (c *Client) Status(ctx context.Context, hash bool) (wire.Status, error) {
	return watched[wire.Status](ctx, c, "/v1/status", values("hash", fmt.Sprint(hash)))
}

// Ready returns nil, or why the broker is not ready.
func (c *Client) Ready(ctx context.Context) error {
	_, err := plain[map[string]string](ctx, c, "/readyz", nil)
	return err
}

// watched returns a read that blocks if the client watches.
func watched[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	out, res, err := get[T](ctx, c, http.MethodGet, path, c.fresh.query(c.watch.query(query)), nil, nil)
	if err == nil {
		c.watch.recordIndexes(res.Header)
		c.fresh.reportStale(res.Header)
	}
	return out, err
}

// unwatched returns a read that never blocks.
func unwatched[T any](ctx context.Context, c *Client, path string) (T, error) {
	out, res, err := get[T](ctx, c, http.MethodGet, path, c.fresh.query(nil), nil, nil)
	if err == nil {
		c.fresh.reportStale(res.Header)
	}
	return out, err
}

func plain[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	out, _, err := get[T](ctx, c, http.MethodGet, path, query, nil, nil)
	return out, err
}

func jobPath(id string) string { return "/v1/jobs/" + url.PathEscape(id) }

// values builds a query of the pairs whose value is not empty.
func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

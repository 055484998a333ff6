package peers

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// elsewhereKey carries the *node.ElsewhereError of a request to another broker.
type elsewhereKey struct{}

// hostOf is the host of a request's URL, by which connections are kept: the site, so that none is ever used for
// another one that has registered the same address, and as its port a number of the address, so that none to a former
// address is used. It is never looked up.
func hostOf(at *node.ElsewhereError) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(at.Peer)) // never fails
	return at.Site + ":" + strconv.Itoa(1+int(sum.Sum32()%0xffff))
}

// meaning says whom a request is for.
func meaning(ctx context.Context, at *node.ElsewhereError) context.Context {
	return context.WithValue(ctx, elsewhereKey{}, at)
}

func meant(ctx context.Context) *node.ElsewhereError {
	at, _ := ctx.Value(elsewhereKey{}).(*node.ElsewhereError)
	return at
}

// Dial connects to a site's broker at its peer address, and fails if another one answers there.
type Dial func(ctx context.Context, site, addr string) (net.Conn, error)

// errNoDial reports a broker that was given no way to others.
var errNoDial = errors.New("this broker has no way to others")

func (d Dial) connect(ctx context.Context, timeout time.Duration) (net.Conn, error) {
	at := meant(ctx)
	if d == nil || at == nil {
		return nil, errNoDial
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("nobody has answered within %s", timeout))
	defer cancel()
	return d(ctx, at.Site, at.Peer)
}

func newRoad(dial Dial, timeout time.Duration) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial.connect(ctx, timeout)
		},
		ResponseHeaderTimeout: timeout,
		MaxIdleConnsPerHost:   16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, // logs are passed on as they come
	}
}

// roads are the connections to other brokers: the answer to a blocking read is waited
// for longer.
type roads struct {
	plain, patient *http.Transport
	blocks         func(*http.Request) bool
}

func newRoads(cfg *Config) *roads {
	p := &roads{newRoad(cfg.Dial, cfg.Timeout), newRoad(cfg.Dial, cfg.Timeout), cfg.Blocks}
	p.patient.ResponseHeaderTimeout += cfg.Patience
	return p
}

// RoundTrip implements http.RoundTripper. What comes back is harmless to whoever it is passed on to.
func (p *roads) RoundTrip(r *http.Request) (*http.Response, error) {
	road := p.plain
	if p.blocks(r) {
		road = p.patient
	}
	res, err := road.RoundTrip(r.WithContext(untraced{r.Context()}))
	if err != nil {
		return nil, err
	}
	out, err := harmless(res)
	if err != nil {
		_ = res.Body.Close()
		return nil, err
	}
	return out, nil
}

// CloseIdleConnections ends what is kept open.
func (p *roads) CloseIdleConnections() {
	p.plain.CloseIdleConnections()
	p.patient.CloseIdleConnections()
}

// untraced hides from a transport who wants to see what comes before an answer: a proxy passes that on as it is.
type untraced struct{ context.Context }

// Value implements context.Context.
func (u untraced) Value(key any) any {
	v := u.Context.Value(key)
	if _, traces := v.(*httptrace.ClientTrace); traces {
		return nil
	}
	return v
}

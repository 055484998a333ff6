// Package peers asks other sites' brokers: it passes requests on to them, puts this
// broker's own questions to them, and makes sure that who answers is who was meant.
// What is asked, it does not know.
package peers

import (
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/transport"
)

// Config of a Client; all fields are required but the two that say so.
type Config struct {
	Site func() string // this broker's own
	// Federation is the id by which brokers tell theirs from others; "" = not told.
	Federation string
	Dial       Dial          // nil: there is no way to others
	Timeout    time.Duration // until another broker begins to answer
	// Blocks reports whether a request is a blocking read: it is answered after Patience
	// more at the latest, and one that is passed on takes one of Waiters.
	Blocks   func(*http.Request) bool
	Patience time.Duration
	Waiters  *transport.Places
	Stop     *transport.Stop
	// Refuse answers with a problem in the form that the client asked in.
	Refuse func(http.ResponseWriter, *http.Request, *problem.Problem)
	Log    zerolog.Logger
}

// Client asks other brokers. All methods may be called from any goroutine.
type Client struct {
	cfg       Config
	transport *roads
	proxy     *httputil.ReverseProxy
}

// New makes a Client.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg, transport: newRoads(&cfg)}
	c.proxy = c.newProxy()
	return c
}

// Timeout returns how long another broker may take until it begins to answer.
func (c *Client) Timeout() time.Duration { return c.cfg.Timeout }

// Close ends the connections that are kept open.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

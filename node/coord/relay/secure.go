package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/identity"
)

// Roster says who the members are, by their keys: what the federation has decided, as far as this member knows.
// Its methods may be called from any goroutine and do not block.
type Roster interface {
	// Find returns the standing of a key's holder, the zero Standing if nobody was admitted with it.
	Find(key identity.Public) Standing
	// Key returns the key of a site.
	Key(site string) (identity.Public, bool)
}

// Standing is what the holder of a key may do.
type Standing struct {
	Site    string // "": the key is nobody's
	Elector bool   // it may vote in raft, and so be its leader
	Banned  bool
	Motion  uint64 // by which it was expelled; 0: none that is known, as of one that this member denies
}

// Identity is who a member is, and by whom it knows the others.
type Identity struct {
	key    identity.Key
	config *tls.Config
	roster Roster

	mu    sync.Mutex
	conns map[*peerConn]struct{} // all that are open
}

// NewIdentity returns the identity of the member that holds a key.
func NewIdentity(key identity.Key, roster Roster) (*Identity, error) {
	config, err := key.Config()
	if err != nil {
		return nil, err
	}
	return &Identity{key: key, config: config, roster: roster, conns: map[*peerConn]struct{}{}}, nil
}

// Sign signs parts for a purpose by the member's key; see signature.Message.
func (i *Identity) Sign(purpose string, parts ...[]byte) []byte { return i.key.Sign(purpose, parts...) }

// Public returns the member's key.
func (i *Identity) Public() identity.Public { return i.key.Public() }

// Roster returns by whom it knows the others.
func (i *Identity) Roster() Roster { return i.roster }

// peerConn is a connection whose other end has proven a key.
type peerConn struct {
	net.Conn          // TLS
	raw      net.Conn // below it
	of       *Identity
	key      identity.Public
	// site and kind are what the connection was allowed for; 0 = it is not yet. Guarded by of.mu.
	site     string
	kind     Kind
	accepted bool
	// replaced is when it was seen that the site has another key. Guarded by of.mu.
	replaced time.Time
}

// Close implements net.Conn. It waits for nobody: a goodbye to one who does not read would take seconds, and
// frames say themselves where they end.
func (c *peerConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.raw.Close()
}

func (i *Identity) add(conn *tls.Conn, raw net.Conn) (*peerConn, error) {
	state := conn.ConnectionState()
	key, err := identity.PeerOf(&state)
	if err != nil {
		return nil, err
	}
	c := &peerConn{Conn: conn, raw: raw, of: i, key: key}
	i.mu.Lock()
	i.conns[c] = struct{}{}
	i.mu.Unlock()
	return c, nil
}

// accept has whoever dialed prove its key; the deadline of raw bounds it.
func (i *Identity) accept(raw net.Conn) (*peerConn, error) {
	conn := tls.Server(raw, i.config)
	if err := conn.Handshake(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoHandshake, err)
	}
	c, err := i.add(conn, raw)
	if err == nil {
		c.accepted = true
	}
	return c, err
}

// errNoHandshake reports one who speaks no TLS, or shows no key.
var errNoHandshake = errors.New("no TLS handshake of a broker")

// ErrOtherKey reports that another key answers at an address than that of the site that was meant.
var ErrOtherKey = errors.New("another key answers there")

// connect has whoever answers at an address prove that it is the one that is meant.
func (i *Identity) connect(ctx context.Context, raw net.Conn, to Peer, k Kind) (*peerConn, error) {
	answer := &keptFirst{Conn: raw}
	conn := tls.Client(answer, i.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, answer.explain(err, to)
	}
	answer.done, answer.first = true, nil
	c, err := i.add(conn, raw)
	if err != nil {
		return nil, err
	}
	if err = i.expect(c.key, to, k); err == nil && !i.allow(c, to.Site, k) {
		err = fmt.Errorf("%w: site %s", ErrBanned, i.roster.Find(c.key).Site)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// expect compares the key that answers with the one of the site, or the node, that is meant.
func (i *Identity) expect(key identity.Public, to Peer, k Kind) error {
	if to.Node != [16]byte{} {
		if key.Node() != to.Node {
			return fmt.Errorf("%w: node %x, not %x", ErrOtherKey, key.Node(), to.Node)
		}
		return nil
	}
	if to.Site == "" && k.isQuestion() {
		return nil // it asks who answers
	}
	want, known := i.roster.Key(to.Site)
	switch {
	case !known:
		return fmt.Errorf("%w: the key of site %s is not known here", ErrOtherKey, to.Site)
	case key != want:
		who := i.roster.Find(key).Site
		if who == "" {
			who = "nobody that was admitted"
		}
		return fmt.Errorf("%w: that of %s, not of %s: correct `advertise` or `peer` of %[3]s", ErrOtherKey, who, to.Site)
	}
	return nil
}

// judge says whether the holder of a key may open a connection of a kind as a site: greeted, or why not.
func (i *Identity) judge(key identity.Public, p Preamble) byte {
	switch s := i.roster.Find(key); {
	case s.Banned:
		return banned
	case p.Kind == KindEnroll:
		return greeted // who asks proves in the question what it asks for
	case s.Site == "":
		return unknownKey
	case s.Site != p.Site:
		return otherName
	case p.Kind == KindRaft && !s.Elector:
		return noElector
	}
	return greeted
}

// allow notes what a connection was allowed for; false: the roster has changed meanwhile.
func (i *Identity) allow(c *peerConn, site string, k Kind) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	c.site, c.kind = site, k
	return i.isAllowed(c)
}

// mayStay reports whether a connection that was allowed is so by the roster of now, or ends in a moment. REQUIRES: i.mu
// held.
func (i *Identity) mayStay(c *peerConn) bool {
	return i.isAllowed(c) || i.roster.Find(c.key) == Standing{} && i.owesNews(c)
}

// isAllowed reports whether a connection is allowed by the roster of now. REQUIRES: i.mu held.
func (i *Identity) isAllowed(c *peerConn) bool {
	s := i.roster.Find(c.key)
	switch {
	case s.Banned:
		return false
	case c.kind == 0 || c.kind == KindEnroll || c.kind == KindJoin && !c.accepted:
		return true // it asks whoever answers
	case c.accepted && c.kind == KindRaft && !s.Elector:
		return false
	}
	return s.Site != "" && s.Site == c.site
}

// newsWait is how long a connection of raft that was dialed to a site stays once that has another key.
const newsWait = time.Second

// owesNews reports whether a connection whose key is nobody's any more stays for a moment: it was dialed for raft, to a
// site that has another key now, and is not expelled. By it the site is told that, which nobody else will tell it; who
// has stolen the old key reaches nobody by it. REQUIRES: i.mu held.
func (i *Identity) owesNews(c *peerConn) bool {
	next, known := i.roster.Key(c.site)
	if c.accepted || c.kind != KindRaft || c.site == "" || !known || i.roster.Find(next).Banned {
		return false
	}
	if c.replaced.IsZero() {
		c.replaced = time.Now()
		time.AfterFunc(newsWait, func() { i.Recheck() })
	}
	return time.Since(c.replaced) < newsWait
}

// Recheck closes the connections of those who may not have them any more. It is to be called when the roster has
// changed, and returns how many it has closed.
func (i *Identity) Recheck() (closed int) {
	var over []*peerConn
	i.mu.Lock()
	for c := range i.conns {
		if !i.mayStay(c) {
			over = append(over, c)
		}
	}
	i.mu.Unlock()
	for _, c := range over {
		_ = c.Close()
	}
	return len(over)
}

// Proven returns the key that the other end of a connection has proven, and the site whose key that is by the roster
// of now ("": nobody's). ok is false where connections are plain.
func Proven(conn net.Conn) (key identity.Public, site string, ok bool) {
	if a, wrapped := conn.(*acceptedConn); wrapped {
		conn = a.Conn
	}
	c, ok := conn.(*peerConn)
	if !ok {
		return key, "", false
	}
	return c.key, c.of.roster.Find(c.key).Site, true
}

package coordtest

import (
	"context"
	"crypto/sha256"
	"net"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
)

// KeyOf returns the key of a site in tests.
func KeyOf(site string) identity.Key { return identity.FromSeed(sha256.Sum256([]byte(site))) }

// roster knows the sites that were given a way into the network, all of them electors.
type roster struct {
	mu    sync.RWMutex
	sites map[identity.Public]string
}

func (r *roster) admit(site string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sites == nil {
		r.sites = map[identity.Public]string{}
	}
	r.sites[KeyOf(site).Public()] = site
}

// Find implements relay.Roster.
func (r *roster) Find(key identity.Public) relay.Standing {
	r.mu.RLock()
	defer r.mu.RUnlock()
	site := r.sites[key]
	return relay.Standing{Site: site, Elector: site != ""}
}

// Key implements relay.Roster.
func (r *roster) Key(site string) (identity.Public, bool) {
	key := KeyOf(site).Public()
	return key, r.Find(key).Site == site
}

// Secured returns a site's way into the network, by mutual TLS; faults act inside it. Every site that was given one
// is a member to all.
func (n *Network) Secured(site string) (*relay.Network, error) {
	n.roster.admit(site)
	own, err := relay.NewIdentity(KeyOf(site), &n.roster)
	if err != nil {
		return nil, err
	}
	return &relay.Network{
		Identity: own,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			n.mu.Lock()
			refused := n.refused(&faulty{n: n, from: site, addr: addr})
			n.mu.Unlock()
			if refused {
				return nil, ErrFault
			}
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
		Wrap: func(conn net.Conn, addr string) net.Conn {
			f := &faulty{Conn: conn, n: n, from: site, addr: addr}
			n.watch(f)
			return f
		},
	}, nil
}

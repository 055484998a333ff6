// Package intruder speaks to brokers' peer ports as attackers do, for tests: as a stranger with a key of his own, as a
// member by the key in its data folder, or as a member that is admitted and never runs a broker.
//
// It uses the product's own protocol, since an attacker may as well; what it may and may not do is judged by the tests.
package intruder

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
)

// Intruder is somebody with a key.
type Intruder struct {
	Site  string // the name under which it greets
	Key   identity.Key
	Group [16]byte // lineage that it names
	Trust *truststore.Store
	// Via dials for it, nil: this machine does.
	Via func(ctx context.Context, addr string) (net.Conn, error)
	own *relay.Identity
}

// Member is the site whose data folder this is.
func Member(site, dir string) (*Intruder, error) {
	key, err := identity.Load(filepath.Join(dir, "key"))
	if err != nil {
		return nil, err
	}
	return knowing(site, key, filepath.Join(dir, "roster"))
}

// Stranger has a key of his own, and knows all that the owner of a data folder does.
func Stranger(site, dir string) (*Intruder, error) { return Holder(site, identity.Generate(), dir) }

// Holder has a key, and knows all that the owner of a data folder does.
func Holder(site string, key identity.Key, dir string) (*Intruder, error) {
	return knowing(site, key, filepath.Join(dir, "roster"))
}

// Admitted uses an invitation until the electors have agreed: it is a member then, with no broker and no data. Its
// roster is kept in dir.
func Admitted(ctx context.Context, dir, token string) (*Intruder, error) {
	v, err := invitation.Parse(token)
	if err != nil {
		return nil, err
	}
	i, err := knowing(v.Site, identity.Generate(), filepath.Join(dir, "roster-"+v.Site))
	if err != nil {
		return nil, err
	}
	i.Group = v.Federation
	r, err := i.Asking().Join(ctx, &v, i.Key)
	if err == nil {
		err = i.Trust.Reset(r)
	}
	return i, err
}

func knowing(site string, key identity.Key, roster string) (*Intruder, error) {
	trust, err := truststore.Open(roster, nil)
	if err != nil {
		return nil, err
	}
	own, err := relay.NewIdentity(key, trust)
	if err != nil {
		return nil, err
	}
	return &Intruder{Site: site, Key: key, Group: trust.Roster().Federation, Trust: trust, own: own}, nil
}

// As greets under another name, by the same key.
func (i *Intruder) As(site string) *Intruder {
	other := *i
	other.Site = site
	return &other
}

// Asking is how it asks for admission.
func (i *Intruder) Asking() *enroll.Asking {
	return &enroll.Asking{Dialer: i.Dialer(), Every: 20 * time.Millisecond}
}

// Dialer dials as it.
func (i *Intruder) Dialer() *relay.Dialer { return &relay.Dialer{Net: i.network(), Site: i.Site} }

func (i *Intruder) network() *relay.Network { return &relay.Network{Identity: i.own, Dial: i.Via} }

// Sign signs the encodings of commands for the federation that it knows.
func (i *Intruder) Sign(encoded []byte) signature.Signature {
	return command.Sign(i.Trust.Roster().Federation, encoded, i.Key.Sign)
}

// Dial opens a connection of a kind; the error says why the other end refuses.
func (i *Intruder) Dial(ctx context.Context, to relay.Peer, kind relay.Kind) (Conn, error) {
	conn, err := i.Dialer().Dial(ctx, to, kind, i.Group)
	if err != nil {
		return Conn{}, fmt.Errorf("dial as %s: %w", i.Site, err)
	}
	if at, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(at)
	}
	return Conn{conn, i}, err
}

package membership

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate stands between memberlist and the table. memberlist calls it from
// any of its goroutines, mostly with its own lock held: nothing here blocks or
// calls back.
type delegate struct {
	table      *table
	mine       atomic.Pointer[meta]
	federation [16]byte
	known      func(site string) bool // nil: every site is
	conflict   func(site string, a, b netip.AddrPort)
	left       chan struct{} // capacity 1: a member died or left, this one included
}

var (
	_ memberlist.Delegate         = (*delegate)(nil)
	_ memberlist.AliveDelegate    = (*delegate)(nil)
	_ memberlist.EventDelegate    = (*delegate)(nil)
	_ memberlist.ConflictDelegate = (*delegate)(nil)
	_ memberlist.PingDelegate     = (*delegate)(nil)
)

// NodeMeta implements memberlist.Delegate. Its limit is MaxMeta, which
// Meta.validate has kept.
func (d *delegate) NodeMeta(int) []byte { return d.mine.Load().encode() }

// NotifyMsg implements memberlist.Delegate: no messages of ours are gossiped.
func (d *delegate) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (d *delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (d *delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive implements memberlist.AliveDelegate: it sees every claim that a
// member is alive, and an error makes memberlist drop the claim.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	addr, _, err := d.inspect(n)
	if err != nil {
		return err
	}
	if n.PMin > memberlist.ProtocolVersion2Compatible || n.PMax < memberlist.ProtocolVersion2Compatible ||
		n.PCur < n.PMin || n.PCur > n.PMax || n.DMin != 0 || n.DMax != 0 || n.DCur != 0 {
		// memberlist would keep it, and then fail every exchange because of it.
		return fmt.Errorf("%w: it speaks gossip %d…%d: upgrade it", ErrRefused, n.PMin, n.PMax)
	}
	if d.known != nil && n.Name != d.table.self && !d.known(n.Name) {
		return fmt.Errorf("%w: it is no member of the federation, or was banned", ErrRefused)
	}
	if err := d.table.admit(n.Name); err != nil {
		return err
	}
	d.table.heard(n.Name, addr)
	return nil
}

// inspect reads what a node says of itself.
func (d *delegate) inspect(n *memberlist.Node) (netip.AddrPort, meta, error) {
	ip, ok := netip.AddrFromSlice(n.Addr)
	addr := netip.AddrPortFrom(ip.Unmap(), n.Port)
	switch {
	case !validSite(n.Name):
		return addr, meta{}, fmt.Errorf("%w: %.80q is no site name: name its site by a DNS label in lower case", ErrRefused, n.Name)
	case !ok || addr.Addr().IsUnspecified() || addr.Addr().IsMulticast() || n.Port == 0:
		return addr, meta{}, fmt.Errorf("%w: %s is no address to send to: correct its advertise address", ErrRefused, addr)
	}
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return addr, m, fmt.Errorf("%w: %w: run the same version at all sites", ErrRefused, err)
	}
	if m.federation != d.federation {
		return addr, m, fmt.Errorf("%w: it belongs to federation %x: correct its join addresses", ErrRefused, m.federation)
	}
	return addr, m, nil
}

// NotifyJoin implements memberlist.EventDelegate.
func (d *delegate) NotifyJoin(n *memberlist.Node) { d.NotifyUpdate(n) }

// NotifyUpdate implements memberlist.EventDelegate.
func (d *delegate) NotifyUpdate(n *memberlist.Node) {
	if addr, m, err := d.inspect(n); err == nil {
		d.table.present(n.Name, addr, m)
	}
}

// NotifyLeave implements memberlist.EventDelegate: the node is dead, or it has
// left; which of them its metadata said before.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	d.table.gone(n.Name)
	select {
	case d.left <- struct{}{}:
	default:
	}
}

// NotifyConflict implements memberlist.ConflictDelegate.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	addr, m, err := d.inspect(other)
	if err != nil {
		return
	}
	if d.table.contested(other.Name, addr, m) {
		held, _, _ := d.inspect(existing)
		d.conflict(other.Name, held, addr)
	}
}

// AckPayload implements memberlist.PingDelegate.
func (d *delegate) AckPayload() []byte { return nil }

// NotifyPingComplete implements memberlist.PingDelegate.
func (d *delegate) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	if addr, _, err := d.inspect(n); err == nil {
		d.table.heard(n.Name, addr)
	}
}

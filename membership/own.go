package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// ownAddress returns what others are told to send to: a number, since they never look
// up what a member tells.
func (g *Gossip) ownAddress() (netip.AddrPort, error) {
	if g.cfg.Advertise == "" {
		return g.trans.bound, nil
	}
	host, port, err := splitAddress(g.cfg.Advertise, 1) // Validate has seen it
	if err != nil {
		return netip.AddrPort{}, err
	}
	ips := []netip.Addr{}
	if ip, cause := netip.ParseAddr(host); cause == nil {
		ips = append(ips, ip)
	} else if ips, err = g.resolve(host); err != nil {
		return netip.AddrPort{}, err
	}
	ips = slices.DeleteFunc(ips, func(ip netip.Addr) bool { return ip.Unmap().IsUnspecified() || ip.IsMulticast() })
	if len(ips) == 0 {
		return netip.AddrPort{}, fmt.Errorf("look up %s: it means no host's own address", host)
	}
	// One of IPv4, if there is one: where others have no IPv6 they still reach it.
	i := max(0, slices.IndexFunc(ips, func(ip netip.Addr) bool { return ip.Unmap().Is4() }))
	return netip.AddrPortFrom(ips[i].Unmap(), port), nil
}

func (g *Gossip) resolve(host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(g.active, g.t.stream)
	defer cancel()
	if g.cfg.lookup != nil {
		return g.cfg.lookup(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// beginLater looks this site's own name up until it is found: it may not be known
// yet, as that of a pod that has just started.
func (g *Gossip) beginLater(why error) {
	for {
		g.limit.warn(&g.log, "own name").Err(why).Str("advertise", g.cfg.Advertise).
			Msg("gossip: this site's own address is not found, so other sites do not see it: correct `advertise`, or have its name known; trying again")
		select {
		case <-time.After(g.t.rejoin):
		case <-g.active.Done():
			return
		}
		addr, err := g.ownAddress()
		switch {
		case g.active.Err() != nil:
			return
		case err != nil:
			why = err
			continue
		}
		if err = g.startMemberlist(addr); err != nil {
			g.log.Error().Err(err).Msg("gossip: start failed: restart the broker")
			return
		}
		g.log.Info().Stringer("gossip", addr).Str("advertise", g.cfg.Advertise).Msg("gossip: this site's own address is found")
		return
	}
}

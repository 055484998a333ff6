package membership

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// rejoinAtOnce bounds the addresses tried in one round; the choice is
	// random, so that all get their turn.
	rejoinAtOnce = 3
	// maxCandidates bounds what is taken from Config.Join, and maxLookups the
	// host names among them that are looked up in one round.
	maxCandidates = 4 * MaxMembers
	maxLookups    = 8
	// exchanges: after a partition, the first makes both sides refute their own
	// death, and the next ones carry the refutations.
	exchanges = 3
)

// rejoinLoop looks for members that we do not see, at once and then forever:
// memberlist itself never again calls a member that it has given up.
func (g *Gossip) rejoinLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-g.active.Done():
			return
		case <-timer.C:
		case <-g.rejoinNow:
		}
		g.advanceKeys()
		g.rejoin()
		g.table.expire(g.t.rivalry)
		// Half to one and a half of the mean: brokers that started together, or
		// found the same one dead, do not call in step.
		timer.Reset(g.t.rejoin/2 + rand.N(g.t.rejoin))
	}
}

// rejoin is one round.
func (g *Gossip) rejoin() {
	missing := g.missing()
	rand.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
	var wg sync.WaitGroup
	for _, addr := range missing[:min(rejoinAtOnce, len(missing))] {
		wg.Go(func() { g.call(addr) })
	}
	wg.Wait()
}

// call exchanges states with the member at addr until we see it.
func (g *Gossip) call(addr netip.AddrPort) {
	for range exchanges {
		if g.active.Err() != nil || g.table.sees(addr) {
			return
		}
		if _, err := g.list.Join([]string{addr.String()}); err != nil {
			if g.active.Err() == nil && g.table.alone() {
				g.limit.warn(&g.log, "alone").Err(err).Stringer("address", addr).
					Msg("gossip: nobody was found: check that the address is right, and that federation and gossip key are the same there")
			}
			return
		}
	}
}

// missing returns the addresses to call: of Config.Join and of members that
// died, without those that we see.
func (g *Gossip) missing() []netip.AddrPort {
	addrs := g.table.lost()
	if g.cfg.Join != nil {
		addrs = append(addrs, g.candidates(g.cfg.Join())...)
	}
	seen := map[netip.AddrPort]bool{g.trans.advertise: true}
	return slices.DeleteFunc(addrs, func(a netip.AddrPort) bool {
		known := seen[a] || g.table.sees(a)
		seen[a] = true
		return known
	})
}

// candidates turns addresses into numbers. Host names are looked up a few at a
// time, chosen at random.
func (g *Gossip) candidates(list []string) []netip.AddrPort {
	var addrs []netip.AddrPort
	var names []string
	for _, c := range list[:min(maxCandidates, len(list))] {
		host, port, err := splitAddress(c, 1)
		if err != nil {
			g.limit.warn(&g.log, "candidate").Err(err).Msg("gossip: cannot join through this address: correct it")
		} else if ip, err := netip.ParseAddr(host); err == nil {
			addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), port))
		} else {
			names = append(names, c)
		}
	}
	ctx, cancel := context.WithTimeout(g.active, g.t.stream)
	defer cancel()
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(maxLookups, len(names))] {
		addrs = append(addrs, g.lookup(ctx, name)...)
	}
	return addrs
}

func (g *Gossip) lookup(ctx context.Context, name string) []netip.AddrPort {
	host, port, err := splitAddress(name, 1)
	if err != nil {
		return nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil && g.active.Err() == nil {
		g.limit.warn(&g.log, "resolve").Err(err).Msg("gossip: cannot look up an address to join through: check the name")
	}
	addrs := make([]netip.AddrPort, 0, len(ips))
	for _, ip := range ips {
		addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), port))
	}
	return addrs
}

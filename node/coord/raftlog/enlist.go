package raftlog

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// No address is proposed that the leader has not dialed. Whoever asks for one must
// answer there as the same site, with the same data directory, in the same
// process; so a typo, another member's address in whatever spelling and a frame of
// a stranger change nothing. DESIGN.md, "Joining", has the cases.

const (
	// maxDialBacks bounds the questions that are being checked at a time.
	maxDialBacks = 16
	// maxSpellings bounds the addresses that one name is looked up to.
	maxSpellings = 8
)

// enlist adds a node as a non-voter, or changes its address, once it has answered
// there. It answers joinOK only for what the group has committed.
func (l *Log) enlist(ctx context.Context, q joinRequest) joinReply {
	select {
	case l.backs <- struct{}{}:
		defer func() { <-l.backs }()
	default:
		return joinReply{Code: joinRetry, Text: "too many join at a time"}
	}
	former := l.configuredPeer(q.Site)
	// The leader, too: a founder has committed its address before anybody could dial it.
	if !noDialBack {
		if a := l.dialBack(ctx, q); a.Code != joinOK {
			return a
		}
	}
	if !former.None() && former.Addr != q.Addr && !noDialBack {
		if a := l.dialFormer(ctx, former.Addr, q); a.Code != joinOK {
			return a
		}
	}
	return l.commitAddress(ctx, q)
}

// commitAddress has the group agree on a member's address. One at a time: what the
// configuration says while none is under way is committed.
func (l *Log) commitAddress(ctx context.Context, q joinRequest) joinReply {
	l.moving.Lock()
	defer l.moving.Unlock()
	add := l.raft.AddNonvoter
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		switch {
		case string(s.ID) != q.Site:
			continue
		case transport.HostPort(s.Address) == q.Addr:
			return l.confirmLeadership(ctx)
		case s.Suffrage == raft.Voter:
			add = l.raft.AddVoter
		}
	}
	at := transport.ServerAddress(q.Site, q.Addr)
	if err := outcome(l.Ctx, add(raft.ServerID(q.Site), at, 0, l.t.enqueue)); err != nil {
		return joinReply{Code: joinRetry, Text: err.Error()}
	}
	l.log.Info().Str("site", q.Site).Str("peer", q.Addr).Msg("member joined or moved")
	return joinReply{Code: joinOK}
}

// confirmLeadership answers joinOK if this member was the leader after it was asked: the
// configuration of a former one may be old.
func (l *Log) confirmLeadership(ctx context.Context) joinReply {
	term, leads := l.Calls.Leading()
	ctx, cancel := context.WithTimeout(ctx, l.t.lease)
	defer cancel()
	if !leads || l.trans.Confirm(ctx, term, l.voters) != nil {
		return joinReply{Code: joinRetry, Text: "the leader cannot confirm that it leads"}
	}
	return joinReply{Code: joinOK}
}

// dialBack asks whoever answers at the address that a member claims. A name may
// mean several addresses: all that answer must be the member, and one must answer.
func (l *Log) dialBack(ctx context.Context, q joinRequest) joinReply {
	ctx, cancel := context.WithTimeout(ctx, l.t.rpc)
	defer cancel()
	addrs, err := l.resolveAll(ctx, q.Addr)
	if err != nil {
		return unreachableReply(l.cfg.Site, q, err)
	}
	replies := make([]joinReply, len(addrs))
	errs := make([]error, len(addrs))
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() { replies[i], errs[i] = l.dialer.join(ctx, relay.Peer{Addr: addr}, joinRequest{Who: true}) })
	}
	wg.Wait()
	heard := false
	for i, a := range replies {
		switch {
		case errs[i] != nil:
			err = errs[i]
		case a.Site != q.Site || a.Node != q.Node || a.Instance != q.Instance:
			return refusal("address %s of site %s is %s: correct `advertise` or `peer` of %s, and restart it", describeAddress(q.Addr, addrs[i]), q.Site, a.otherAnswerer(q), q.Site)
		case a.Addr != q.Addr && !noClaimedAddress:
			return notAsked(q, describeAddress(q.Addr, addrs[i]), a)
		default:
			heard = true
		}
	}
	if !heard {
		return unreachableReply(l.cfg.Site, q, err)
	}
	return joinReply{Code: joinOK}
}

// notAsked refuses an address for which the member itself does not ask: whoever passes
// connections on to it, or has asked it who it is, can name it.
func notAsked(q joinRequest, at string, a joinReply) joinReply {
	return refusal("site %s says at %s that its address is %.300q, not %s: somebody else asks in its name: "+
		"keep strangers from the peer port", q.Site, at, a.Addr, q.Addr)
}

// otherAnswerer says who answered in place of the one that asked.
func (a joinReply) otherAnswerer(q joinRequest) string {
	switch {
	case a.Site == "":
		return "no member on Raft"
	case a.Site != q.Site:
		return fmt.Sprintf("site %.63q", a.Site)
	case a.Node != q.Node:
		return fmt.Sprintf("another data directory of site %s (node %.32q)", a.Site, a.Node)
	}
	return "another process of that site, on the same or a copied data directory"
}

func unreachableReply(leader string, q joinRequest, err error) joinReply {
	return joinReply{Code: joinUnheard, Text: fmt.Sprintf("the leader, site %s, hears nobody at address %s of site %s (%v): "+
		"correct its `advertise` or `peer` and restart it, or open the port", leader, q.Addr, q.Site, err)}
}

// describeAddress names the address that answered beside the one that was looked up.
func describeAddress(claimed, addr string) string {
	if claimed == addr {
		return addr
	}
	return claimed + " (" + addr + ")"
}

// resolveAll returns all addresses that host:port may mean.
func (l *Log) resolveAll(ctx context.Context, addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, err = netip.ParseAddr(host); err == nil {
		return []string{addr}, nil
	}
	lookup := l.cfg.lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	ips, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	var addrs []string
	for _, ip := range ips[:min(len(ips), maxSpellings)] {
		addrs = append(addrs, net.JoinHostPort(ip.Unmap().String(), port))
	}
	return addrs, nil
}

// dialFormer refuses a member that still answers at the address that the group has,
// as another process: two new nodes of one name, or a copy of a data directory.
func (l *Log) dialFormer(ctx context.Context, former string, q joinRequest) joinReply {
	ctx, cancel := context.WithTimeout(ctx, l.t.rpc/2)
	defer cancel()
	a, err := l.dialer.join(ctx, relay.Peer{Addr: former}, joinRequest{Who: true})
	switch {
	case err == nil && a.Site == q.Site && a.Node == q.Node && a.Instance == q.Instance && a.Addr != q.Addr &&
		!noClaimedAddress:
		return notAsked(q, former, a)
	case err != nil, a.Site != q.Site, a.Node == q.Node && a.Instance == q.Instance:
		return joinReply{Code: joinOK}
	case a.Node != q.Node:
		return refusal("site %s runs at %s with another data directory: stop it or choose another name", q.Site, former)
	}
	return refusal("site %s runs twice, at %s and at %s, on the same or a copied data directory: stop one of them", q.Site, former, q.Addr)
}

// verifyPeer asks whether a member is where others tell: it must answer there as the
// site and the node that the state knows. raft's safety does not hang on it, its
// entries and votes go by names; but they should not be sent to strangers.
func (l *Log) verifyPeer(ctx context.Context, to relay.Peer) bool {
	a, err := l.dialer.join(ctx, relay.Peer{Addr: to.Addr}, joinRequest{Who: true})
	return err == nil && l.isMember(a, to.Site)
}

// isMember reports whether an answer is that of a site of this lineage, with the
// node that is registered, if one is.
func (l *Log) isMember(a joinReply, site string) bool {
	theirs, err := parseLineage(a.Federation, a.Lineage, a.Epoch)
	node, cause := hex.DecodeString(a.Node)
	if err != nil || cause != nil || len(node) != 16 || theirs != l.line || a.Site != site {
		return false
	}
	l.machine.call(func(m coord.Machine) { err = m.Admit(site, [16]byte(node)) })
	return err == nil
}

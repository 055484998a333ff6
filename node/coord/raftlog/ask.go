package raftlog

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// dialer opens connections to other members.
type dialer struct{ *relay.Dialer }

// join asks one member.
func (d dialer) join(ctx context.Context, to relay.Peer, q joinRequest) (joinReply, error) {
	a, _, err := d.timedJoin(ctx, to, q)
	return a, err
}

// timedJoin asks one member, and returns the time from the question to the answer on a connection that is open: a round
// trip, and what the member takes to answer.
func (d dialer) timedJoin(ctx context.Context, to relay.Peer, q joinRequest,
) (a joinReply, took time.Duration, err error) {
	conn, err := d.Dial(ctx, to, relay.KindJoin, [16]byte{})
	if err != nil {
		return a, 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	b, err := json.Marshal(q)
	if err != nil {
		return a, 0, fmt.Errorf("encode join: %w", err)
	}
	sent := time.Now()
	if _, err = conn.Write(relay.EndFrame(append(relay.Frame(nil), b...))); err != nil {
		return a, 0, fmt.Errorf("ask %s: %w", to.Addr, err)
	}
	b, err = relay.ReadFrame(conn, nil, maxJoinFrame)
	took = time.Since(sent)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		return joinReply{}, 0, fmt.Errorf("answer of %s: %w", to.Addr, err)
	}
	if _, site, proven := relay.Proven(conn); proven && site != a.Site {
		return joinReply{}, 0, fmt.Errorf("answer of %s: it says that it is site %.63q, and its key is %s", to.Addr, a.Site, ownerOf(site))
	}
	return a, took, nil
}

// ownerOf words whose a key is.
func ownerOf(site string) string {
	if site == "" {
		return "nobody's that was admitted"
	}
	return "that of site " + site
}

// signRequest says who asks, and for which address.
func (l *Log) signRequest(q joinRequest) joinRequest {
	q.Site, q.Node, q.Addr, q.Instance = l.cfg.Site, hex.EncodeToString(l.cfg.Node[:]), l.Addr(), l.instance
	return q
}

// join asks members in turn until one admits this node; it returns their
// lineage. q names the one that is wanted, if any.
func (l *Log) join(ctx context.Context, through []string, q joinRequest) (lineage, error) {
	q = l.signRequest(q)
	last, code := errors.New("no answer"), ""
	var said relay.Reminder
	for try := 0; ; try++ {
		wrong := 0
		for _, addr := range through {
			line, a, err := l.joinAt(ctx, addr, q)
			if err == nil || isFinal(err) {
				return line, err
			}
			if errors.Is(err, relay.ErrNoPeerPort) {
				wrong++
			}
			last, code = err, a.Code
		}
		if wrong == len(through) {
			return lineage{}, last
		}
		if l.cfg.Waiting != nil {
			l.cfg.Waiting(through, last)
		}
		if said.Due(code, time.Now()) {
			l.log.Warn().Strs("through", through).Str("reason", last.Error()).Msg("not joined yet: trying again")
		}
		if err := coord.Sleep(ctx, l.t.calls().Pause(try)); err != nil {
			return lineage{}, fmt.Errorf("join: %w (last: %w)", err, last)
		}
	}
}

// joinAt asks at one address of the configuration. A name may mean several: they
// are asked in turn until one admits this node.
func (l *Log) joinAt(ctx context.Context, addr string, q joinRequest) (line lineage, a joinReply, err error) {
	looking, cancel := context.WithTimeout(ctx, l.t.rpc)
	addrs, err := l.resolveAll(looking, addr)
	cancel()
	if err != nil {
		return line, a, fmt.Errorf("join %s: %w: correct the name, or wait until it is known", addr, err)
	}
	for _, at := range addrs {
		once, cancel := context.WithTimeout(ctx, 3*l.t.rpc+l.t.enqueue)
		a, err = l.dialer.join(once, relay.Peer{Addr: at}, q)
		cancel()
		switch {
		case err != nil:
			err = fmt.Errorf("join %s: %w", describeAddress(addr, at), err)
		case a.Instance == l.instance:
			err = fmt.Errorf("join %s: that is this broker itself: give another member's peer address", describeAddress(addr, at))
		default:
			line, err = a.verdict(describeAddress(addr, at))
		}
		if err == nil || isFinal(err) {
			break
		}
	}
	return line, a, err
}

// isFinal reports whether asking again is of no use.
func isFinal(err error) bool {
	return errors.Is(err, coord.ErrForeign) || errors.Is(err, coord.ErrJoinRefused) || errors.Is(err, ErrEpoch)
}

func (a joinReply) verdict(addr string) (lineage, error) {
	line, err := parseLineage(a.Federation, a.Lineage, a.Epoch)
	switch {
	case a.Code == joinForeign:
		return line, fmt.Errorf("join %s: %w: %s", addr, coord.ErrForeign, a.Text)
	case a.Code == joinEpoch:
		return line, fmt.Errorf("join %s: %w: %s", addr, ErrEpoch, a.Text)
	case a.Code == joinRefused:
		return line, fmt.Errorf("join %s: %w: %s", addr, coord.ErrJoinRefused, a.Text)
	case a.Code != joinOK || err != nil:
		return line, fmt.Errorf("join %s: not now: %s", addr, a.Text)
	}
	return line, nil
}

// settleAddress tells the leader this member's address at every start, and again once no
// leader is known for a while: a group that has expelled a site and let it in again has
// dropped it meanwhile.
func (l *Log) settleAddress(ctx context.Context) {
	for least := time.Duration(0); l.askForAddress(ctx, least) && l.awaitSilence(ctx); least = l.t.epochCheck {
	}
}

// awaitSilence returns once no leader was known for two looks; false: ctx has ended.
func (l *Log) awaitSilence(ctx context.Context) bool {
	look := time.NewTicker(l.t.epochCheck)
	defer look.Stop()
	for silent := 0; silent < 2; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
		if silent++; !l.lonely() {
			silent = 0
		}
	}
	return true
}

// lonely reports whether no leader is known.
func (l *Log) lonely() bool {
	leader, self := l.leader()
	return leader.None() && !self
}

// askForAddress asks until the leader says that the group has this member's address, at least so long apart; false: ctx
// has ended. This member's own configuration may be old: it is not asked.
func (l *Log) askForAddress(ctx context.Context, least time.Duration) bool {
	var said relay.Reminder
	said.Wait(joinRetry, time.Now().Add(l.t.epochCheck)) // usual at a start
	for try := 0; ; try++ {
		changed := l.Calls.NextLead()
		a := l.askLeader(ctx)
		pause := max(least, l.t.calls().Pause(try+4))
		switch a.Code {
		case joinOK:
			return true
		case joinRefused, joinUnheard:
			// Somebody has to do something about it: it need not be asked often.
			pause = min(l.t.backoff<<min(try+4, 20), 15*l.t.rpc)
		}
		if ctx.Err() == nil && said.Due(a.Code, time.Now()) {
			l.log.Warn().Str("peer", l.Addr()).Str("reason", a.Text).Msg("the group does not take this member's address: others may not find it")
		}
		select {
		case <-time.After(pause):
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// askLeader asks for this member's address: the leader, or members that may know
// who that is.
func (l *Log) askLeader(ctx context.Context) joinReply {
	q := l.signRequest(l.line.request())
	leader, self := l.leader()
	if self {
		once, cancel := context.WithTimeout(ctx, 3*l.t.rpc)
		defer cancel()
		return l.admit(once, q)
	}
	a := joinReply{Code: joinRetry, Text: "no other member is known"}
	for _, to := range l.peersToAsk(leader) {
		once, cancel := context.WithTimeout(ctx, 3*l.t.rpc)
		said, err := l.dialer.join(once, to, q)
		cancel()
		if err == nil && said.Code != joinRetry {
			return said
		}
		if a.Text = said.Text; err != nil {
			a.Text = fmt.Sprintf("site %s is not reached at %s (%v): start it, correct its `advertise` or `peer`, "+
				"or name with `gossip_join` where members are now", to.Site, to.Addr, err)
		}
	}
	return a
}

// peersToAsk returns the members to ask for an address: the leader, if one is known,
// else some of all.
func (l *Log) peersToAsk(leader relay.Peer) (list []relay.Peer) {
	if !leader.None() {
		return []relay.Peer{leader}
	}
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		if string(s.ID) != l.cfg.Site {
			list = append(list, relay.Peer{Site: string(s.ID), Addr: transport.HostPort(s.Address)})
		}
	}
	rand.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	return list[:min(len(list), maxAskedMembers)]
}

package raftlog

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// maxJoinFrame bounds a question or answer of a join connection, in bytes.
const maxJoinFrame = 8 << 10

// joinRequest asks to be a member at an address (the first time, or again when
// the address changed), or, with Who, only who answers there.
type joinRequest struct {
	Who        bool   `json:"who,omitempty"`
	Site       string `json:"site,omitempty"`
	Node       string `json:"node,omitempty"`
	Federation string `json:"federation,omitempty"` // "" = whichever it is, in any epoch
	Epoch      uint64 `json:"epoch,omitempty"`
	Lineage    string `json:"lineage,omitempty"` // "" = the first epoch's
	Addr       string `json:"addr,omitempty"`
	Hops       int    `json:"hops,omitempty"`
}

type joinReply struct {
	Code       string `json:"code"` // one of the codes below
	Text       string `json:"text,omitempty"`
	Site       string `json:"site,omitempty"` // of the member that answers
	Node       string `json:"node,omitempty"`
	Federation string `json:"federation,omitempty"`
	Epoch      uint64 `json:"epoch,omitempty"`
	Lineage    string `json:"lineage,omitempty"`
	Resting    bool   `json:"resting,omitempty"` // it does not want to be a voter
}

const (
	joinOK      = "ok"
	joinRetry   = "retry"   // no lead now
	joinForeign = "foreign" // another federation
	joinEpoch   = "epoch"   // another epoch of it
	joinRefused = "refused"
)

// serveJoin answers one question.
func (l *Log) serveJoin(conn net.Conn, _ relay.Preamble) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(l.t.handshake + 2*l.t.rpc + l.t.enqueue))
	b, err := relay.ReadFrame(bufio.NewReader(conn), nil, maxJoinFrame)
	var q joinRequest
	if err == nil {
		err = json.Unmarshal(b, &q)
	}
	if err != nil {
		l.mux.Refuse(conn, fmt.Errorf("join: %w", err))
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, 2*l.t.rpc+l.t.enqueue)
	defer cancel()
	a := l.admit(ctx, q)
	mine := l.line.request()
	a.Site, a.Node, a.Federation = l.cfg.Site, hex.EncodeToString(l.cfg.Node[:]), mine.Federation
	a.Epoch, a.Lineage = mine.Epoch, mine.Lineage
	if b, err = json.Marshal(a); err == nil {
		_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), b...)))
	}
}

// admit decides at the lead; other members pass the question on.
func (l *Log) admit(ctx context.Context, q joinRequest) joinReply {
	leader, self := l.lead()
	switch {
	case q.Who:
		return joinReply{Code: joinOK, Resting: l.resting.Load()}
	case q.Federation != "":
		theirs, err := parseLineage(q.Federation, q.Lineage, q.Epoch)
		if err != nil {
			return joinReply{Code: joinRefused, Text: "malformed federation"}
		}
		if err = l.line.admits(theirs, l.Addr()); err != nil {
			return joinReply{Code: codeOf(err), Text: err.Error()}
		}
	}
	switch {
	case self:
		return l.admitHere(ctx, q)
	case leader.None() || q.Hops > 1:
		return joinReply{Code: joinRetry, Text: "no lead is known now"}
	}
	q.Hops++
	a, err := l.dialer.join(ctx, leader, q)
	if err != nil {
		return joinReply{Code: joinRetry, Text: "the lead cannot be reached: " + err.Error()}
	}
	return a
}

func (l *Log) admitHere(ctx context.Context, q joinRequest) joinReply {
	node, err := hex.DecodeString(q.Node)
	host, port, addrErr := net.SplitHostPort(q.Addr)
	if n, cause := strconv.ParseUint(port, 10, 16); cause != nil || n == 0 || host == "" {
		addrErr = errors.Join(addrErr, errors.New("not HOST:PORT"))
	}
	switch {
	case err != nil || len(node) != 16 || !fsm.ValidSite(q.Site) || addrErr != nil || len(q.Addr) > fsm.MaxAddress:
		return joinReply{Code: joinRefused, Text: fmt.Sprintf("malformed site %.80q, node %.40q or address %.300q", q.Site, q.Node, q.Addr)}
	case !l.calls.Leads():
		return joinReply{Code: joinRetry, Text: "the lead is new and not ready"}
	case q.Site == l.cfg.Site && [16]byte(node) != l.cfg.Node:
		return joinReply{Code: joinRefused, Text: "site " + q.Site + " is the lead itself: choose another name"}
	}
	l.machine.call(func(m coord.Machine) { err = m.Admit(q.Site, [16]byte(node)) })
	if err != nil {
		return joinReply{Code: joinRefused, Text: err.Error()}
	}
	return l.enlist(ctx, q)
}

// enlist adds the node as a non-voter, or changes its address.
func (l *Log) enlist(ctx context.Context, q joinRequest) joinReply {
	id, addr := raft.ServerID(q.Site), serverAddress(q.Site, q.Addr)
	add := l.raft.AddNonvoter
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		switch {
		case s.ID != id && dialed(s.Address) == q.Addr:
			return joinReply{Code: joinRefused, Text: fmt.Sprintf("address %s is site %s's: advertise another", q.Addr, s.ID)}
		case s.ID != id:
			continue
		case s.Address == addr:
			return joinReply{Code: joinOK}
		case l.answersAs(ctx, dialed(s.Address), q):
			return joinReply{Code: joinRefused, Text: fmt.Sprintf("site %s runs at %s with another data directory: stop it or choose another name", q.Site, dialed(s.Address))}
		case s.Suffrage == raft.Voter:
			add = l.raft.AddVoter
		}
	}
	if err := add(id, addr, 0, l.t.enqueue).Error(); err != nil {
		return joinReply{Code: joinRetry, Text: err.Error()}
	}
	l.log.Info().Str("site", q.Site).Str("peer", q.Addr).Msg("member joined or moved")
	return joinReply{Code: joinOK}
}

// answersAs says whether the site's former address answers as the same site
// with another node: two new nodes of one name, before either is registered.
func (l *Log) answersAs(ctx context.Context, addr string, q joinRequest) bool {
	ctx, cancel := context.WithTimeout(ctx, l.t.rpc/2)
	defer cancel()
	a, err := l.dialer.join(ctx, relay.Peer{Addr: addr}, joinRequest{Who: true})
	return err == nil && a.Site == q.Site && a.Node != q.Node
}

// dialer opens connections to other members.
type dialer struct{ *relay.Dialer }

// join asks one member.
func (d dialer) join(ctx context.Context, to relay.Peer, q joinRequest) (joinReply, error) {
	conn, err := d.Dial(ctx, to, relay.KindJoin, [16]byte{})
	if err != nil {
		return joinReply{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	b, err := json.Marshal(q)
	if err != nil {
		return joinReply{}, fmt.Errorf("encode join: %w", err)
	}
	if _, err = conn.Write(relay.EndFrame(append(relay.Frame(nil), b...))); err != nil {
		return joinReply{}, fmt.Errorf("ask %s: %w", to.Addr, err)
	}
	b, err = relay.ReadFrame(conn, nil, maxJoinFrame)
	var a joinReply
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		return joinReply{}, fmt.Errorf("answer of %s: %w", to.Addr, err)
	}
	return a, nil
}

// join asks members in turn until one admits this node; it returns their
// lineage. q names the one that is wanted, if any.
func (l *Log) join(ctx context.Context, through []string, q joinRequest) (lineage, error) {
	q.Site, q.Node, q.Addr = l.cfg.Site, hex.EncodeToString(l.cfg.Node[:]), l.Addr()
	last := errors.New("no answer")
	for try := 0; ; try++ {
		for _, addr := range through {
			once, cancel := context.WithTimeout(ctx, 3*l.t.rpc+l.t.enqueue)
			a, err := l.dialer.join(once, relay.Peer{Addr: addr}, q)
			cancel()
			if err == nil {
				var line lineage
				if line, err = a.verdict(addr); err == nil {
					return line, nil
				}
			}
			if errors.Is(err, coord.ErrForeign) || errors.Is(err, coord.ErrJoinRefused) || errors.Is(err, ErrEpoch) {
				return lineage{}, err
			}
			last = err
			if try%4 == 0 {
				l.log.Info().Str("through", addr).Err(err).Msg("not joined yet: trying again")
			}
		}
		if err := sleep(ctx, l.t.calls().Pause(try)); err != nil {
			return lineage{}, fmt.Errorf("join: %w (last: %w)", err, last)
		}
	}
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

// settleAddress tells the lead this member's address for as long as the
// group's configuration has another one.
func (l *Log) settleAddress(ctx context.Context) {
	q := l.line.request()
	q.Site, q.Node, q.Addr = l.cfg.Site, hex.EncodeToString(l.cfg.Node[:]), l.Addr()
	for try := 0; ; try++ {
		servers := l.raft.GetConfiguration().Configuration().Servers
		known := false
		for _, s := range servers {
			known = known || string(s.ID) == q.Site && dialed(s.Address) == q.Addr
		}
		if known {
			return
		}
		for _, s := range servers {
			if string(s.ID) == q.Site && len(servers) > 1 {
				continue
			}
			once, cancel := context.WithTimeout(ctx, 3*l.t.rpc)
			a, err := joinReply{}, error(nil)
			if string(s.ID) == q.Site {
				a = l.admit(once, q)
			} else {
				a, err = l.dialer.join(once, relay.Peer{Site: string(s.ID), Addr: dialed(s.Address)}, q)
			}
			cancel()
			if err == nil && a.Code == joinRefused {
				l.log.Warn().Str("reason", a.Text).Msg("the lead does not take this member's address")
			}
			if err == nil && a.Code == joinOK {
				break
			}
		}
		if sleep(ctx, l.t.calls().Pause(try+4)) != nil {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

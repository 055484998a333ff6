package raftlog

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// maxJoinFrame bounds a question or answer of a join connection, and maxInstance
// the name of a process or a random word in it, in bytes.
const (
	maxJoinFrame = 8 << 10
	maxInstance  = 64
)

// joinRequest asks to be a member at an address (the first time, or again when
// the address changed), or, with Who, only who answers there.
type joinRequest struct {
	Who        bool   `json:"who,omitempty"`
	Trips      string `json:"trips,omitempty"` // with Who: also how far it is from the other voters; see askTrips
	Site       string `json:"site,omitempty"`
	Node       string `json:"node,omitempty"`
	Federation string `json:"federation,omitempty"` // "" = whichever it is, in any epoch
	Epoch      uint64 `json:"epoch,omitempty"`
	Lineage    string `json:"lineage,omitempty"` // "" = the first epoch's
	// New: it is of no epoch yet, whichever the federation is in.
	New      bool   `json:"new,omitempty"`
	Addr     string `json:"addr,omitempty"`
	Instance string `json:"instance,omitempty"` // the process that asks; it answers at Addr, too
	Hops     int    `json:"hops,omitempty"`
}

type joinReply struct {
	Code       string `json:"code"` // one of the codes below
	Text       string `json:"text,omitempty"`
	Site       string `json:"site,omitempty"` // of the member that answers
	Node       string `json:"node,omitempty"`
	Addr       string `json:"addr,omitempty"` // where it wants to be dialed
	Federation string `json:"federation,omitempty"`
	Epoch      uint64 `json:"epoch,omitempty"`
	Lineage    string `json:"lineage,omitempty"`
	Instance   string `json:"instance,omitempty"`
	Resting    bool   `json:"resting,omitempty"` // it does not want to be a voter
	Unfit      bool   `json:"unfit,omitempty"`   // it should not lead now
	Slow       bool   `json:"slow,omitempty"`    // it handed over for its slow disk a while ago
	Far        bool   `json:"far,omitempty"`     // it handed over since it is far from a majority a while ago
	// Trips are its round trips to other voters, in microseconds, and Asked is the word of the question; only
	// where they were asked for.
	Trips map[string]int64 `json:"trips,omitempty"`
	Asked string           `json:"asked,omitempty"`
}

const (
	joinOK      = "ok"
	joinRetry   = "retry"   // no leader now
	joinForeign = "foreign" // another federation
	joinEpoch   = "epoch"   // another epoch of it
	joinRefused = "refused"
	joinUnheard = "unheard" // the leader hears nobody at the address
)

// serveJoin answers one question.
func (l *Log) serveJoin(conn net.Conn, p relay.Preamble) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(l.t.handshake + 2*l.t.rpc + l.t.enqueue))
	b, err := relay.ReadFrame(bufio.NewReader(conn), nil, maxJoinFrame)
	var q joinRequest
	if err == nil {
		err = json.Unmarshal(b, &q)
	}
	if _, _, proven := relay.Proven(conn); err == nil && proven && !q.Who && q.Hops == 0 && q.Site != p.Site {
		err = fmt.Errorf("site %s asks for an address of site %.63q", p.Site, q.Site)
	}
	if err != nil {
		l.Mux.Refuse(conn, fmt.Errorf("join: %w", err))
		return
	}
	relay.QuestionReceived(conn)
	ctx, cancel := context.WithTimeout(l.Ctx, 2*l.t.rpc+l.t.enqueue)
	defer cancel()
	a := l.answer(ctx, q)
	if b, err = json.Marshal(a); err == nil {
		_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), b...)))
	}
}

// answer says who this member is, too. While it is about to join itself it is of
// no lineage, and not about to vote.
func (l *Log) answer(ctx context.Context, q joinRequest) joinReply {
	a := joinReply{Code: joinOK, Resting: true}
	select {
	case <-l.opened:
		a = l.admit(ctx, q)
		mine := l.line.request()
		a.Federation, a.Epoch, a.Lineage = mine.Federation, mine.Epoch, mine.Lineage
	default:
		if !q.Who {
			a.Code, a.Text = joinRetry, "site "+l.cfg.Site+" is about to join itself"
		}
	}
	a.Site, a.Node, a.Addr, a.Instance = l.cfg.Site, hex.EncodeToString(l.cfg.Node[:]), l.Addr(), l.instance
	if l.cfg.claims != nil && l.cfg.claims() != "" {
		a.Addr = l.cfg.claims()
	}
	return a
}

// admit decides at the leader; other members pass the question on.
func (l *Log) admit(ctx context.Context, q joinRequest) joinReply {
	leader, self := l.leader()
	switch {
	case q.Who:
		return l.describeSelf(q)
	case q.Federation != "":
		theirs, err := parseLineage(q.Federation, q.Lineage, q.Epoch)
		if err != nil {
			return joinReply{Code: joinRefused, Text: "malformed federation"}
		}
		if q.New && theirs.federation == l.line.federation {
			theirs = l.line
		}
		if err = l.line.admits(theirs, l.Addr()); err != nil {
			return joinReply{Code: errorCode(err), Text: err.Error()}
		}
	}
	switch {
	case self:
		return l.admitHere(ctx, q)
	case leader.None() || q.Hops > 1:
		return joinReply{Code: joinRetry, Text: "no leader is known now"}
	}
	q.Hops++
	a, err := l.dialer.join(ctx, leader, q)
	if err != nil {
		return joinReply{Code: joinRetry, Text: "the leader cannot be reached: " + err.Error()}
	}
	return a
}

// admitHere decides at the leader.
func (l *Log) admitHere(ctx context.Context, q joinRequest) joinReply {
	node, err := hex.DecodeString(q.Node)
	addrErr := relay.CheckAddress(q.Addr)
	switch {
	case err != nil || len(node) != 16 || !command.ValidSite(q.Site) || len(q.Instance) == 0 ||
		len(q.Instance) > maxInstance:
		return refusal("malformed site %.80q, node %.40q or instance %.80q", q.Site, q.Node, q.Instance)
	case addrErr != nil:
		return refusal("%v: correct `advertise` or `peer` of %s", addrErr, q.Site)
	case !l.Calls.Leads():
		return joinReply{Code: joinRetry, Text: "the leader is new and not ready"}
	case q.Site == l.cfg.Site && [16]byte(node) != l.cfg.Node:
		return refusal("site %s is the leader itself: choose another name", q.Site)
	}
	l.machine.call(func(m coord.Machine) { err = m.Admit(q.Site, [16]byte(node)) })
	if err != nil {
		return refusal("%v", err)
	}
	return l.enlist(ctx, q)
}

func refusal(format string, args ...any) joinReply {
	return joinReply{Code: joinRefused, Text: fmt.Sprintf(format, args...)}
}

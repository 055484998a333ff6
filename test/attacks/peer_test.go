//go:build attacks

package attacks

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// raftBy dials raft's connections as an intruder.
type raftBy struct {
	*testing.T
	who *intruder.Intruder
	to  relay.Peer
}

// Dial implements raft.StreamLayer.
func (r *raftBy) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	return r.who.Dial(within(r.T), r.to, relay.KindRaft)
}

// Accept implements net.Listener.
func (r *raftBy) Accept() (net.Conn, error) {
	<-r.Context().Done()
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (r *raftBy) Close() error { return nil }

// Addr implements net.Listener.
func (r *raftBy) Addr() net.Addr { return &net.TCPAddr{} }

// TestEntriesOfAHigherTerm: neither a stranger nor a member without a vote has a voter follow it, or take an entry, or
// give it a vote.
func TestEntriesOfAHigherTerm(t *testing.T) {
	attacked(t)
	before, err := shared.Sites[0].Status(within(t))
	must(t, err)
	for _, who := range []*intruder.Intruder{stranger(t, "site-2"), mallory(t).Intruder, mallory(t).As("site-2")} {
		for _, s := range shared.Sites {
			to := peerOf(t, s)
			trans := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
				Stream: &raftBy{t, who, to}, MaxPool: 1, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger(),
			})
			header := raft.RPCHeader{
				ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("site-2"), Addr: []byte("site-2@127.0.0.1:1"),
			}
			id, at := raft.ServerID(s.Name), raft.ServerAddress(to.Addr)
			forged := []*raft.Log{{
				Index: before.Index + 1, Term: math.MaxUint64, Type: raft.LogCommand, Data: []byte("forged"),
			}}
			err := trans.AppendEntries(id, at, &raft.AppendEntriesRequest{
				RPCHeader: header, Term: math.MaxUint64, Entries: forged, LeaderCommitIndex: math.MaxUint64,
			}, new(raft.AppendEntriesResponse))
			if err == nil {
				t.Errorf("%s appends at %s", who.Site, s.Name)
			}
			err = trans.RequestVote(id, at, &raft.RequestVoteRequest{
				RPCHeader: header, Term: math.MaxUint64, LeadershipTransfer: true,
			}, new(raft.RequestVoteResponse))
			if err == nil {
				t.Errorf("%s is voted for at %s", who.Site, s.Name)
			}
			_ = trans.Close()
		}
	}
	for _, s := range shared.Sites {
		if now, err := s.Status(within(t)); err != nil || now.Term > before.Term+1 {
			t.Errorf("%s: term %d became %d, %v", s.Name, before.Term, now.Term, err)
		}
	}
}

// TestUndecodableCommands: what no member can decode enters no log, and stops nobody.
func TestUndecodableCommands(t *testing.T) {
	attacked(t)
	who := mallory(t)
	good := command.Append(nil, who.own(&command.Offer{Version: 1}))
	who.seq--
	unknown := append([]byte(nil), good...)
	unknown[1] = 99 // its kind
	for name, c := range map[string][][]byte{
		"an unknown kind": {unknown}, "half": {good[:len(good)/2]}, "more": {append(append([]byte(nil), good...), 0)},
		"zeros": {make([]byte, 64)}, "a byte": {{0xff}}, "a good one and half of one": {good, good[:5]},
		"a length that lies": {append(binary.AppendUvarint(nil, 1<<40), good...)},
	} {
		who.calls++
		conn := who.call(t)
		outcome, _, err := conn.OrderRaw(who.calls, c...)
		if closed := errors.Is(err, io.EOF); !closed && (err != nil || outcome != rejected) {
			t.Errorf("%s: %d, %v", name, outcome, err)
		}
		_ = conn.Close()
	}
}

// TestGarbageOfMembers: frames that mean nothing, on every kind and of every broker, stop nobody.
func TestGarbageOfMembers(t *testing.T) {
	attacked(t)
	junk := [][]byte{
		{},
		{0, 0, 0, 0},
		{0xff, 0xff, 0xff, 0xff},
		{0, 0, 0, 1, 99},
		{0, 0, 0, 2, 1, 1},
		{0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 1},
		append([]byte{0, 0, 1, 0}, make([]byte, 256)...), []byte("GET / HTTP/1.1\r\n\r\n\x00\xff"),
		{0, 0, 0, 5, 3, 1, 0xff, 0xff, 1},
		[]byte("\x00\x00\x00\x02{}"), []byte("\x00\x00\x00\x04null"), []byte("\x00\x00\x00\x0f{\"who\":\"maybe\"}"),
	}
	for _, s := range shared.Sites {
		for _, k := range []relay.Kind{
			relay.KindForward, relay.KindJoin, relay.KindEnroll, relay.KindCompare, relay.KindHTTP, relay.KindKeys,
			relay.KindFeed, relay.KindFiles, relay.KindLogs, relay.KindProgress,
			0, 99,
		} {
			for _, b := range junk {
				conn, err := mallorysOwn(t).Dial(within(t), peerOf(t, s), k)
				if err != nil {
					continue // a kind that is none
				}
				_, _ = conn.Write(b)
				_ = conn.Close()
			}
		}
	}
}

// mallorysOwn is mallory without registering it again.
func mallorysOwn(t *testing.T) *intruder.Intruder {
	t.Helper()
	if theMallory == nil {
		return mallory(t).Intruder
	}
	return theMallory.Intruder
}

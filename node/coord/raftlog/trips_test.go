package raftlog

import (
	"encoding/json"
	"net"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// TestEarlyAnswersAreNoRoundTrips: a voter that answers before it is asked was as near as its answer was early, to
// everybody, and could lead for good.
func TestEarlyAnswersAreNoRoundTrips(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	early := relay.NewMux(ln, "b", coordtest.Patience, testLogger(), &relay.Network{})
	early.Handle(relay.KindJoin, func(conn net.Conn, _ relay.Preamble) {
		defer conn.Close()
		said, _ := json.Marshal(joinReply{Code: joinOK, Site: "b", Trips: map[string]int64{"a": 1}})
		_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), said...)))
		_, _ = relay.ReadFrame(conn, nil, maxJoinFrame)
	})
	early.Serve()
	defer early.Close()
	d := dialer{&relay.Dialer{Net: &relay.Network{}, Site: "a"}}
	to := relay.Peer{Site: "b", Addr: ln.Addr().String()}
	if a, took, err := d.timedJoin(patience(t), to, joinRequest{Who: true}); err != nil || a.Site != "b" {
		t.Fatalf("%+v after %v, %v", a, took, err)
	}
	if words, took, ok := d.askTrips(patience(t), to); ok {
		t.Errorf("%v away, and says %v", took, words)
	}
}

//go:build attacks

package attacks

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// TestBannedSite: its open connections are closed within a second, every kind is refused with the reason, what it has
// signed before is of no use any more, and it is told nothing.
func TestBannedSite(t *testing.T) {
	attacked(t)
	who := admit(t, "crook")
	who.register(t, command.Addresses{})
	var open []intruder.Conn
	for _, s := range shared.Sites {
		for _, k := range []relay.Kind{
			relay.KindForward, relay.KindJoin, relay.KindCompare, relay.KindHTTP, relay.KindKeys,
			relay.KindEnroll, relay.KindFiles, relay.KindLogs, relay.KindProgress,
		} {
			conn, err := who.Dial(within(t), peerOf(t, s), k)
			must(t, err)
			defer conn.Close()
			if k == relay.KindForward {
				_, err = conn.Write([]byte{0, 0}) // half of a length: it is in use
				must(t, err)
			}
			open = append(open, conn)
		}
	}
	must(t, shared.Sites[0].Propose(within(t), "ban", "crook", shared.Sites[1]))
	await(t, "all know of it", func() error {
		for _, s := range shared.Sites {
			all, err := s.Members(t.Context())
			if err != nil || !banned(all, "crook") {
				return errNotYet
			}
		}
		return nil
	})
	until := time.Now().Add(time.Second)
	for i, conn := range open {
		must(t, conn.SetReadDeadline(until))
		if _, err := io.ReadAll(conn); err != nil && isTimeout(err) {
			t.Errorf("connection %d stays open", i)
		}
	}
	for _, s := range shared.Sites {
		for kind, k := range kinds {
			await(t, kind+" is refused at "+s.Name, func() error { // the next key of gossip closes all its connections, too
				conn, err := who.Dial(t.Context(), peerOf(t, s), k)
				if err == nil {
					_ = conn.Close()
					return testbed.Final(errNotYet)
				}
				if !errors.Is(err, relay.ErrBanned) {
					return err
				}
				return nil
			})
		}
		if _, err := who.Asking().Roster(within(t), relay.Peer{Addr: peerOf(t, s).Addr}, who.Group); !errors.Is(
			err,
			relay.ErrBanned,
		) {
			t.Errorf("it is told who the members are at %s: %v", s.Name, err)
		}
	}
	next := identity.Generate()
	if a := enrolls(t, next, rekey(who.Group, "crook", 0, who.Key, next)); a["verdict"] != "refused" {
		t.Errorf("a key for it: %v", a)
	}
}

// TestBannedSiteUsesNoInvitation: neither its own admission, sent again, nor an invitation that it has made lets
// anybody in.
func TestBannedSiteUsesNoInvitation(t *testing.T) {
	attacked(t)
	_, v := invited(t, "rogue", map[string]any{"vote": false})
	key := identity.Generate()
	admission := enroll.Admission(&v, key)
	if a := enrolls(t, key, admission); a["verdict"] != "admitted" {
		t.Fatalf("%v", a)
	}
	must(t, shared.Sites[0].Propose(within(t), "ban", "rogue", shared.Sites[1]))
	if a := enrolls(t, identity.Generate(), admission); a["verdict"] != "refused" || strings.Contains(whyOf(a), "\n") {
		t.Errorf("admitted again: %v", a)
	}
	if why := refusedJoin(t, &v, identity.Generate()); why == "" {
		t.Error("another key uses it")
	}
	all, err := shared.Sites[0].Members(within(t))
	must(t, err)
	if !banned(all, "rogue") {
		t.Error("it is banned no more")
	}
}

func whyOf(answer map[string]any) string {
	why, _ := answer["why"].(string)
	return why
}

//go:build attacks

package attacks

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// kinds are all but that of those who want to be members.
var kinds = map[string]relay.Kind{
	"raft": relay.KindRaft, "forward": relay.KindForward, "join": relay.KindJoin, "feed": relay.KindFeed,
	"compare": relay.KindCompare, "http": relay.KindHTTP, "keys": relay.KindKeys,
	"files": relay.KindFiles, "logs": relay.KindLogs, "progress": relay.KindProgress,
}

// TestStrangersOpenNoConnection: who has no key of a member is refused on every kind, at every broker, whatever name it
// greets by.
func TestStrangersOpenNoConnection(t *testing.T) {
	attacked(t)
	for _, name := range []string{"stranger", "site-2", ""} {
		who := stranger(t, name)
		for _, s := range shared.Sites {
			for kind, k := range kinds {
				if _, err := who.Dial(within(t), peerOf(t, s), k); !errors.Is(err, relay.ErrUnknownKey) {
					t.Errorf("%q on %s at %s: %v", name, kind, s.Name, err)
				}
			}
		}
	}
}

// TestStrangersAreToldNoRoster: the one kind that is for strangers tells them nothing but that.
func TestStrangersAreToldNoRoster(t *testing.T) {
	attacked(t)
	who := stranger(t, "stranger")
	for _, s := range shared.Sites {
		r, err := who.Asking().Roster(within(t), relay.Peer{Addr: peerOf(t, s).Addr}, who.Group)
		if err == nil || len(r.Members) > 0 {
			t.Errorf("%s tells %+v, %v", s.Name, r, err)
		}
	}
}

// TestMembersHaveOneName: a member's key opens no connection under another name, be it a member's or nobody's.
func TestMembersHaveOneName(t *testing.T) {
	attacked(t)
	who := mallory(t)
	for _, name := range []string{"site-1", "site-2", "site-3", "nobody", ""} {
		for _, s := range shared.Sites {
			for kind, k := range kinds {
				if _, err := who.As(name).Dial(within(t), peerOf(t, s), k); !errors.Is(err, relay.ErrOtherName) {
					t.Errorf("as %q on %s at %s: %v", name, kind, s.Name, err)
				}
			}
		}
	}
	elector := keyOf(t, shared.Sites[2])
	for kind, k := range kinds {
		if _, err := elector.As("site-2").Dial(within(t), peerOf(t, shared.Sites[0]), k); !errors.Is(err, relay.ErrOtherName) {
			t.Errorf("an elector as another one on %s: %v", kind, err)
		}
	}
}

// TestOnlyElectorsSpeakRaft: a member without a vote sends no votes and no entries.
func TestOnlyElectorsSpeakRaft(t *testing.T) {
	attacked(t)
	who := mallory(t)
	for _, s := range shared.Sites {
		if _, err := who.Dial(within(t), peerOf(t, s), relay.KindRaft); !errors.Is(err, relay.ErrNotElector) {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

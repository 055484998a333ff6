package raftlog

import (
	"reflect"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// TestSavedPeers: a stopped member's data say where the others are; a running one's, and a folder without any, do not.
func TestSavedPeers(t *testing.T) {
	c := newCluster(t)
	a, b := c.open(t, "a"), c.open(t, "b")
	register(t, a)
	register(t, b)
	want := []relay.Peer{{Site: "a", Addr: a.Addr()}}
	_, err := SavedPeers(c.offline("b", ""))
	wants(t, err, ErrLocked)
	closed(t, b, a)
	for range 2 {
		if got, err := SavedPeers(c.offline("b", "")); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	_, err = SavedPeers(Offline{Dir: t.TempDir(), Logger: testLogger()})
	wants(t, err, ErrNoData)
}

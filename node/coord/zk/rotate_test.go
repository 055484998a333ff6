//go:build zookeeper

package zk

import (
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// TestRotate: while brokers run the tree goes over to another password, one restart of each after the other.
func TestRotate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	former := c.place
	again := func() {
		for _, s := range all {
			if err := s.l.Close(); err != nil {
				t.Fatal(err)
			}
			s.m, s.said = coordtest.NewMachine(), 0
			s.l = c.Open(t, s.site, s.m).(*Log)
			s.register(t, byte(s.inc)+7)
		}
		for _, s := range all {
			if err := s.say(patience(t)); err != nil {
				t.Fatalf("%s: %v", s.site, err)
			}
		}
	}
	c.place.User, c.place.Password, c.place.Former = "next", "secret:2", former.User+":"+former.Password
	again()
	if n, err := Rotate(patience(t), c.place, testLogger()); err != nil || n < 20 {
		t.Fatalf("%d znodes: %v", n, err)
	}
	c.place.Former = ""
	again()
	if _, err := Rotate(patience(t), c.place, testLogger()); err != nil {
		t.Fatal(err)
	}
	_, err := Inspect(patience(t), former, 1, testLogger())
	says(t, err, ErrDenied, c.place.Chroot+tree.FederationPath)
	if r, err := Inspect(patience(t), c.place, 1, testLogger()); err != nil || len(r.Faults) > 0 {
		t.Errorf("by the new one: %+v, %v", r, err)
	}
}

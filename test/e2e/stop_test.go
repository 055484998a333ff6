package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestStoppedLeadWakesUp: the broker that orders is stopped, another one takes its
// place, and the first goes on as if nothing had happened. No task runs twice at a
// time, nothing is lost, and all brokers agree.
func TestStoppedLeadWakesUp(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	var st testbed.Status
	await(t, "three voters", func() (err error) {
		if st, err = fed.Sites[0].Status(within(t)); err == nil && len(st.Voters) < 3 {
			err = fmt.Errorf("voters are %v", st.Voters)
		}
		return err
	})
	var old, other *testbed.Site
	for _, s := range fed.Sites {
		if s.Name == st.Leader {
			old = s
		} else {
			other = s
		}
	}
	if old == nil {
		t.Fatalf("nobody leads: %+v", st)
	}
	bag := newGated(t)
	a := submit(t, other, bag.spec(3))
	awaitRunning(t, other, a.ID, 3)

	must(t, old.Signal(syscall.SIGSTOP))
	await(t, "another leader", func() error {
		now, err := other.Status(within(t))
		if err == nil && (now.Leader == "" || now.Leader == old.Name) {
			err = fmt.Errorf("%s follows %q", other.Name, now.Leader)
		}
		return err
	})
	b := submit(t, other, testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{other.Name}}})
	must(t, old.Signal(syscall.SIGCONT))

	bag.open(t)
	awaitEnd(t, other, a.ID)
	awaitEnd(t, other, b.ID)
	await(t, "the first leader is ready again", func() error { return old.Ready(within(t)) })
	bag.noOverlap(t)
	agree(t, fed)
}

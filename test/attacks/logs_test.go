//go:build attacks

package attacks

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// heard is what a broker that asks for an output is told.
type heard struct {
	stdout string
	done   asklogs.Done
}

// Piece implements asklogs.Taker.
func (h *heard) Piece(_, stream int, b []byte) error {
	if stream == 0 {
		h.stdout += string(b)
	}
	return nil
}

// Done implements asklogs.Taker.
func (h *heard) Done(_ int, d asklogs.Done) error {
	h.done = d
	return nil
}

// outputFor is what a member is told that asks a site for the output of the first task of a job.
func outputFor(t *testing.T, who *intruder.Intruder, at *testbed.Site, num uint64, attempt uint32) (h heard) {
	t.Helper()
	conn, err := who.Dial(within(t), peerOf(t, at), relay.KindLogs)
	must(t, err)
	c := asklogs.NewConn(conn)
	defer c.Close()
	must(t, c.Ask(within(t), asklogs.Question{Most: 1 << 20, Refs: []asklogs.Ref{{Num: num, Attempt: attempt}}}, &h))
	return h
}

// TestOutputsOfOthers: what a task has written is given by the site that ran it to its owner's broker, and to no other
// member, whatever it asks, while it runs and after it; its owner gives what has come home to nobody.
func TestOutputsOfOthers(t *testing.T) {
	attacked(t)
	const secret = "the result of the season"
	a, err := shared.Sites[0].Submit(within(t), testbed.Spec{
		Command: []string{"/bin/sh", "-c", "echo " + secret}, Sites: &testbed.Where{Only: []string{"site-2"}},
	})
	must(t, err)
	_, err = shared.Sites[0].AwaitJob(within(t), a.ID, "succeeded")
	must(t, err)
	id, err := command.ParseJobID(a.ID)
	must(t, err)
	for _, at := range shared.Sites[:2] {
		for name, who := range map[string]*intruder.Intruder{
			"a member that lends nothing": mallory(t).Intruder, "a third site": keyOf(t, shared.Sites[2]),
		} {
			for _, attempt := range []uint32{0, 1} {
				want := heard{done: asklogs.Done{Refusal: asklogs.NotHere}}
				if got := outputFor(t, who, at, id.Num, attempt); got != want {
					t.Errorf("%s is told by %s: %+v", name, at.Name, got)
				}
			}
		}
	}
	running := begun(t, shared.Sites[0], testbed.Spec{
		Command: []string{"/bin/sh", "-c", "echo " + secret + "; exec sleep 600"}, Sites: &testbed.Where{Only: []string{"site-2"}},
	})
	for who, want := range map[*intruder.Intruder]asklogs.Refusal{
		mallory(t).Intruder: asklogs.NotHere, keyOf(t, shared.Sites[2]): asklogs.NotHere,
		keyOf(t, shared.Sites[0]): asklogs.Running,
	} {
		if got := outputFor(t, who, shared.Sites[1], running.Job.Num, running.Attempt); got.done.Refusal != want {
			t.Errorf("of a running task %s is told %+v", who.Site, got)
		}
	}
	owner := keyOf(t, shared.Sites[0])
	if got := outputFor(t, owner, shared.Sites[1], id.Num, 1); got.stdout != secret+"\n" {
		t.Errorf("its owner is told %+v", got)
	}
}

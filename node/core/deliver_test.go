package core

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestDeliveriesAreTold: what became of outputs is a command of its owner's, and whoever said so hears the answer.
func TestDeliveriesAreTold(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	about := func(site string) (heard command.Code) {
		heard = 255
		a.turn(DeliverEvent{
			Attempts: []command.Delivered{{AttemptRef: command.AttemptRef{
				Job: command.JobID{Site: site, Num: 1}, Attempt: 1, Token: 1,
			}}},
			Done: func(c command.Code) { heard = c },
		})
		r.settle()
		return heard
	}
	if got := about("a"); got != command.OK {
		t.Errorf("of its own job: %s", got)
	}
	if got := about("b"); got != command.NotOwner {
		t.Errorf("of another site's job: %s", got)
	}
}

// TestRefusedRequestsAreRepeatsFirst: a job whose files have gone meanwhile is not taken, but what repeats the request
// for one that was taken gets its number.
func TestRefusedRequestsAreRepeatsFirst(t *testing.T) {
	a := newRig(t, command.DefaultParams(), 1).sites[0]
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	gone := &node.InputError{Field: "inputs.0", Reason: "is not here"}
	send := func(key string, refused error) (got node.Answer) {
		a.turn(SubmitEvent{
			Reqs:  []node.Request{{Spec: spec, Key: key, Refused: refused}},
			Reply: func(_ int, ans node.Answer) { got = ans },
		})
		a.rig.settle()
		return got
	}
	first := send("k", nil)
	if again := send("k", gone); again.Err != nil || !again.Replayed || again.ID != first.ID {
		t.Errorf("the repeat: %+v", again)
	}
	for _, key := range []string{"", "other"} {
		if got := send(key, gone); !errors.Is(got.Err, error(gone)) {
			t.Errorf("key %q: %+v", key, got)
		}
	}
	if next := send("other", nil); next.Err != nil || next.Replayed {
		t.Errorf("the key of a request that was refused: %+v", next)
	}
}

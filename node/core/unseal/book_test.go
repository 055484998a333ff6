package unseal

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/seal"
)

// rig is the book of a site that v's tasks are assigned to.
type rig struct {
	*testing.T
	now    turn.Clock
	book   Book
	victim *seal.Sealer
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, victim: seal.New(seal.Secret{2}, seal.Whose{Site: "v"})}
	r.book = NewBook(seal.New(seal.Secret{1}, seal.Whose{Site: "x"}), &r.now)
	return r
}

func assigned(site string, task uint32, payload []byte) *fsm.Assignment {
	as := &fsm.Assignment{Payload: payload}
	as.AttemptRef = command.AttemptRef{Job: command.JobID{Site: site, Num: 1}, Task: task, Attempt: 1}
	return as
}

// asks returns the one question of a turn.
func (r *rig) asks() turn.KeyAsk {
	r.Helper()
	fx := &turn.Effects{}
	if r.book.Ask(1, fx); len(fx.Asks) != 1 {
		r.Fatalf("asks %+v, want one question", fx.Asks)
	}
	return fx.Asks[0]
}

// answer has an owner answer all of a question alike, and returns how many attempts are examined again.
func (r *rig) answer(ask *turn.KeyAsk, a seal.Answer) (again int) {
	answers := make([]seal.Answer, len(ask.Attempts))
	for i := range answers {
		answers[i] = a
	}
	r.book.Answered(ask.Owner, answers, "", func(command.AttemptRef) { again++ })
	return again
}

// TestRivalRefusesForItselfOnly: a member that submits another's sealed bytes as its own, and refuses their key, does
// not have the other's jobs declined.
func TestRivalRefusesForItselfOnly(t *testing.T) {
	for _, refusal := range []seal.Refusal{seal.NotAssigned, seal.NoSecret, seal.Behind} {
		r := newRig(t)
		p := r.victim.Seal([]byte("{}"), []byte("secret"))
		r.book.Ready(assigned("r", 0, p))
		ask := r.asks()
		r.answer(&ask, seal.Answer{Refusal: refusal})
		if ready, why := r.book.Ready(assigned("v", 0, p)); ready || why != "" {
			t.Errorf("%s: v's own is ready: %v, declined for %q; want that v is asked", refusal, ready, why)
		}
		if ask = r.asks(); ask.Owner != "v" {
			t.Errorf("%s is asked", ask.Owner)
		}
	}
}

// TestOneCancelledAttemptDeclinesNoOther: that the owner does not know the one that it was asked for says nothing of
// the others with the same command.
func TestOneCancelledAttemptDeclinesNoOther(t *testing.T) {
	r := newRig(t)
	p := r.victim.Seal([]byte("{}"), []byte("secret"))
	for i := range uint32(5) {
		r.book.Ready(assigned("v", i, p))
	}
	ask := r.asks()
	if n := r.answer(&ask, seal.Answer{Refusal: seal.NotAssigned}); n != 1 || len(ask.Attempts) != 1 {
		t.Fatalf("of %d asked for, %d are examined again", len(ask.Attempts), n)
	}
	if _, why := r.book.Ready(assigned("v", 0, p)); why == "" {
		t.Error("the one that the owner does not know is not declined")
	}
	key, err := r.victim.Key(p)
	if err != nil {
		t.Fatal(err)
	}
	ask = r.asks()
	if n := r.answer(&ask, seal.Answer{Key: key}); n != 4 || len(ask.Attempts) != 4 {
		t.Fatalf("of %d asked for, %d are examined again", len(ask.Attempts), n)
	}
	if ready, why := r.book.Ready(assigned("v", 3, p)); !ready {
		t.Errorf("with its key it is not ready: %s", why)
	}
}

// TestOwnerThatRefusesRestsLonger: an owner that gives no keys is asked less and less often, whatever it says, and
// meanwhile its tasks are declined at once.
func TestOwnerThatRefusesRestsLonger(t *testing.T) {
	for _, refusal := range []seal.Refusal{seal.NotAssigned, seal.NoSecret, seal.TooMany, seal.Behind, seal.Granted} {
		r := newRig(t)
		questions, offers := 0, 0
		for i := range uint32(3600) {
			r.now.Boot += int64(time.Second)
			if r.book.Expire() {
				offers++
			}
			p := r.victim.Seal([]byte("{}"), []byte{byte(i), byte(i >> 8)})
			if _, why := r.book.Ready(assigned("v", i, p)); why != "" {
				continue
			}
			ask := r.asks()
			r.answer(&ask, seal.Answer{Refusal: refusal})
			questions++
		}
		if questions > 25 || offers > 25 {
			t.Errorf("%s: in an hour %d questions, %d times all bars were lifted", refusal, questions, offers)
		}
	}
}

// TestLeftoverIsNotAssigned: of an attempt whose job's payload is gone the owner has lost no secret.
func TestLeftoverIsNotAssigned(t *testing.T) {
	as := assigned("v", 0, nil)
	got := Answer(newRig(t).victim, "x", as.AttemptRef, leftover{as})
	if want := (seal.Answer{Refusal: seal.NotAssigned}); got != want {
		t.Errorf("it answers %s", got.Refusal)
	}
}

type leftover struct{ as *fsm.Assignment }

func (l leftover) Assignment(string, command.AttemptRef) (fsm.Assignment, bool) { return *l.as, true }

package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/seal"
)

// sealedJob runs at site a only; b is its owner.
func sealedJob(arg string) string {
	return fmt.Sprintf(`{"name":"n","command":["run",%q],"env":{"WHAT":%q},"sites":{"only":["a"]}}`, arg, arg)
}

// commands are what runs at a site, sorted.
func (s *rigSite) commands() (all []string) {
	for _, task := range s.running {
		all = append(all, strings.Join(task.Command, " ")+" WHAT="+task.Env["WHAT"])
	}
	slices.Sort(all)
	return all
}

// What is assigned together is asked for with one question, and equal payloads once for good.
func TestKeysAreAskedForTogether(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 8, 1)
	a, b := r.sites[0], r.sites[1]
	for _, arg := range []string{"x", "y", "x"} {
		b.submit(sealedJob(arg), "")
	}
	r.settle()
	if got := fmt.Sprint(a.commands()); got != "[run x WHAT=x run x WHAT=x run y WHAT=y]" {
		t.Errorf("a runs %s", got)
	}
	if b.asks != 1 {
		t.Errorf("b was asked %d times", b.asks)
	}
	b.submit(sealedJob("y"), "")
	r.settle()
	if n := len(a.running); n != 4 || b.asks != 1 {
		t.Errorf("of a payload whose key is known b was asked: %d questions, %d run", b.asks, n)
	}
	if v := r.job("b.1"); strings.Contains(string(v.Spec.Payload), "WHAT") {
		t.Errorf("the state reads %q", v.Spec.Payload)
	}
}

// A site that cannot ask hands the task back: it is not begun, not lost, not failed, and nobody pays. It runs once the
// owner is reached again.
func TestOwnerOutOfReach(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	var events []fsm.Event
	r.state.Observe(&events)
	b.unheard = "no route to host"
	b.submit(sealedJob("x"), "")
	r.settle()
	var ends []string
	for _, e := range events {
		if e.Kind == fsm.EventTaskRequeued {
			ends = append(ends, fmt.Sprintf("%s: %s", e.End, e.Reason))
		}
	}
	if want := []string{"unopened: no key to what it runs from its owner b, which is asked again in 2s: " +
		"no route to host"}; !slices.Equal(ends, want) {
		t.Fatalf("handed back as %q, want %q", ends, want)
	}
	if v := r.job("b.1"); v.State != fsm.Queued || v.Counts[fsm.Queued] != 1 {
		t.Errorf("the job is %+v", v.Counts)
	}
	for range 9 {
		r.second()
	}
	if n := b.asks; n < 2 || n > 4 {
		t.Errorf("b was asked %d times in 10 s", n)
	}
	if u := r.state.Ledger(); len(u.Sites) != 2 || u.Sites[1].Priority != "0" {
		t.Errorf("the declined attempts cost %+v", u.Sites)
	}
	asked := b.asks
	b.unheard = ""
	for range 20 {
		r.second()
	}
	if got := fmt.Sprint(a.commands()); got != "[run x WHAT=x]" || b.asks != asked+1 {
		t.Errorf("a runs %s after %d questions more", got, b.asks-asked)
	}
}

// second lets a second pass at all sites.
func (r *rig) second() {
	r.t.Helper()
	r.now = r.now.Add(time.Second)
	for _, s := range r.sites {
		for range usageTicks {
			s.turn(TickEvent{})
		}
	}
	r.settle()
}

// An owner whose secret is another than the one that its job was sealed with gives no key, and cannot run it either:
// at other sites it waits, and why says for what; at home it fails.
func TestLostSecret(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "") // a's core is taken
	b.submit(sealedJob("x"), "")
	r.settle()
	b.core.sealer = seal.New(seal.Secret{1}, b.core.sealer.Whose())
	id := a.only()
	delete(a.running, id)
	a.turn(EndedEvent{id, executor.Result{}})
	r.settle()
	if got := a.commands(); len(got) != 0 {
		t.Errorf("a runs %v", got)
	}
	if v := r.job("b.1"); v.State != fsm.Queued {
		t.Errorf("the job is %s", v.State)
	}
}

// Answers that no honest owner gives start nothing.
func TestForgedAnswers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.unheard = "-"
	b.submit(sealedJob("x"), "")
	r.apply(b.pending...)
	b.pending = nil
	fx := &Effects{}
	a.core.now = r.clock()
	a.core.Settle(r.state, fx)
	if len(fx.Asks) != 1 || len(fx.Asks[0].Attempts) != 1 {
		t.Fatalf("asks %+v", fx.Asks)
	}
	forged := map[string]KeysEvent{
		"unasked":  {Owner: "a"},
		"of none":  {Owner: "nobody", Answers: []seal.Answer{{}}},
		"too many": {Owner: "b", Answers: make([]seal.Answer, 2)},
		"none":     {Owner: "b"},
		"another":  {Owner: "b", Answers: []seal.Answer{{Key: seal.Key{1}}}},
		"unknown":  {Owner: "b", Answers: []seal.Answer{{Refusal: 99}}},
	}
	for name, ev := range forged {
		a.turn(ev)
		if len(a.running) != 0 {
			t.Fatalf("%s: a runs %v", name, a.running)
		}
	}
	r.settle()
	if v := r.job("b.1"); v.State != fsm.Queued {
		t.Errorf("the job is %s", v.State)
	}
}

// An owner that refuses all keys, or is not reached, pays nothing for that, and keeps no core from an honest job that
// waits behind hundreds of its own.
func TestRefusingOwnerStarvesNobody(t *testing.T) {
	for _, failed := range []string{"", "no route to host"} {
		r := newRig(t, command.DefaultParams(), 1, 1, 1)
		a, b, c := r.sites[0], r.sites[1], r.sites[2]
		a.submit(sleepJob, "") // a's core is taken
		r.settle()
		r.late = func(s *rigSite, e Event) {
			ev := e.(KeysEvent)
			for i := range ev.Answers {
				if ev.Owner == "b" {
					ev.Answers[i] = seal.Answer{Refusal: seal.NoSecret}
				}
			}
			s.turn(ev)
		}
		b.unheard = failed
		for i := range 300 {
			b.submit(sealedJob(fmt.Sprint(i)), "")
		}
		r.settle()
		c.submit(sealedJob("honest"), "")
		r.settle()
		var events []fsm.Event
		r.state.Observe(&events)
		a.finish(a.only(), 0)
		for range 5 {
			r.second()
		}
		declines := 0
		for _, e := range events {
			if e.Kind == fsm.EventTaskRequeued {
				declines++
			}
		}
		if got := fmt.Sprint(a.commands()); got != "[run honest WHAT=honest]" || declines > 20 {
			t.Errorf("after %d declines a runs %s", declines, got)
		}
	}
}

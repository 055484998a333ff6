package fsm

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// foreign is a Body of no known kind.
type foreign struct{ command.Body }

func TestUnknownCommandChangesNothing(t *testing.T) {
	w := newWorld(t, params(), "a")
	before := w.s.Hash()
	_, err := w.s.Apply(&command.Batch{Term: 9, Elapsed: 50, Commands: []command.Command{
		w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}}),
		{ID: command.ID{Site: "a", Incarnation: 1, Seq: 2}, Body: foreign{}},
	}})
	if !errors.Is(err, ErrUnknownCommand) || w.s.Hash() != before {
		t.Fatalf("err %v, state changed: %v", err, w.s.Hash() != before)
	}
}

// What cannot be read is refused beside what can, and leaves nothing behind.
func TestUnreadableCommandsAreRefused(t *testing.T) {
	w, without := newWorld(t, params(), "a"), newWorld(t, params(), "a")
	submit := w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
	res := w.apply(command.Command{Body: command.Unreadable{}}, submit)
	if res[0].Code != command.OutOfRange || res[1].Code != command.OK {
		t.Errorf("%+v", res)
	}
	without.apply(without.cmd("a", &command.Submit{Jobs: []command.JobSpec{without.job("a", 1)}}))
	if w.s.Hash() != without.s.Hash() {
		t.Error("it changed the state")
	}
}

// Who knows only version 1 cannot read an Orphans; who knows more refuses it as long as version 1 is in force. Both
// have the same state then: not even the command's number is remembered.
func TestCommandsOfANewerVersionLeaveNoTrace(t *testing.T) {
	newer, older := newWorld(t, params(), "a"), newWorld(t, params(), "a")
	ref := command.AttemptRef{Job: command.JobID{Site: "a", Num: 1}, Attempt: 1, Token: 1}
	body := &command.Orphans{Attempts: []command.Ended{{AttemptRef: ref, Outcome: command.Orphaned, Ran: true}}}
	of := newer.cmd("a", body)
	if res := newer.apply(of); res[0].Code != command.OutOfRange {
		t.Errorf("%+v", res)
	}
	older.apply(command.Command{Body: command.Unreadable{}})
	if newer.s.Hash() != older.s.Hash() {
		t.Error("those who can read it have another state than those who cannot")
	}
	newer.must("a", &command.Raise{Version: command.OrphansVersion})
	newer.apply()
	newer.must("a", body)
}

func TestCommandsBeforeGenesis(t *testing.T) {
	w := &world{
		t: t, s: New(), seq: map[string]uint64{}, inc: map[string]uint64{}, offer: map[string]uint64{},
		num: map[string]uint64{},
	}
	res := w.apply(w.registration("a", nil, nil), w.cmd("a", &command.Submit{}))
	if res[0].Code != command.NotFounded || res[1].Code != command.NotFounded || w.s.Index() != 1 {
		t.Fatalf("%+v", res)
	}
	w.base = 77
	g := command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{Federation: [16]byte{1}, Params: params()}}
	other := command.Command{ID: command.ID{Site: "b"}, Body: &command.Genesis{Federation: [16]byte{2}, Params: params()}}
	res = w.apply(g, g, other)
	if res[0].Code != command.OK || res[1].Code != command.OK || res[1].Index != res[0].Index ||
		res[2].Code != command.AlreadyFounded {
		t.Fatalf("%+v", res)
	}
	if w.apply(); w.s.Time() != 0 {
		t.Fatalf("time starts at genesis, not at %d", w.s.Time())
	}
	if w.base = 80; w.apply() != nil && w.s.Time() != 3 {
		t.Fatalf("time is %d, want 3", w.s.Time())
	}
}

func TestTimeFollowsTheLead(t *testing.T) {
	w := newWorld(t, params())
	step := func(term uint64, elapsed, want int64) {
		t.Helper()
		if _, err := w.s.Apply(&command.Batch{Term: term, Elapsed: elapsed}); err != nil || w.s.Time() != want {
			t.Fatalf("term %d elapsed %d: time %d, want %d", term, elapsed, w.s.Time(), want)
		}
	}
	step(1, 100, 100)
	step(1, 90, 100)                        // never backwards
	step(3, 0, 100)                         // a new term continues from here
	step(3, 5, 105)                         //
	step(2, 99999, 105)                     // a former leader moves nothing
	step(3, 500_000, 105+command.MaxStep)   // a cap for one entry
	step(3, 500_000, 105+2*command.MaxStep) //
	step(3, -7, 105+2*command.MaxStep)      //
	step(3, 1<<63-1, 105+2*command.MaxStep) // nonsense moves nothing
	if w.s.Term() != 3 {
		t.Fatalf("term %d", w.s.Term())
	}
}

func TestWindow(t *testing.T) {
	w := newWorld(t, params(), "a")
	send := func(inc, seq, ack uint64) command.Result {
		body := &command.Submit{Jobs: []command.JobSpec{{
			Num: 100 + seq, Count: 1, Need: command.Resources{MilliCPU: 1}, MaxAttempts: 1,
		}}}
		c := command.Command{ID: command.ID{Site: "a", Incarnation: inc, Seq: seq}, Ack: ack, Body: body}
		return w.apply(c)[0]
	}
	want := func(what string, r command.Result, code command.Code) {
		t.Helper()
		if r.Code != code {
			t.Fatalf("%s: %v, want %v", what, r.Code, code)
		}
	}
	second := send(1, 2, 0)
	want("out of order", second, command.OK)
	first := send(1, 1, 0)
	want("the gap", first, command.OK)
	if again := send(1, 2, 0); again.Index != second.Index {
		t.Fatalf("a repeat gave %+v, first %+v", again, second)
	}
	if r, ok := w.s.Result(command.ID{Site: "a", Incarnation: 1, Seq: 2}); !ok || r.Index != second.Index {
		t.Fatalf("recorded: %+v %v", r, ok)
	}
	want("last of the window", send(1, command.Window, 0), command.OK)
	want("beyond the window", send(1, command.Window+1, 0), command.WindowFull)
	want("own ack", send(1, 7, 7), command.OutOfRange)
	want("acknowledged", send(1, command.Window+1, 2), command.OK)
	want("below the floor", send(1, 2, 0), command.Stale)
	if _, ok := w.s.Result(command.ID{Site: "a", Incarnation: 1, Seq: 2}); ok {
		t.Fatal("a result below the floor is still there")
	}
	want("future incarnation", send(2, 1, 0), command.OldIncarnation)
	w.register("a")
	want("former incarnation", send(1, 9, 2), command.OldIncarnation)
	want("a new window", send(2, 9, 0), command.OK)
	want(
		"unknown site",
		w.apply(command.Command{ID: command.ID{Site: "zz", Incarnation: 1, Seq: 1}, Body: &command.Submit{}})[0],
		command.UnknownSite,
	)
	w.check()
}

func TestRegistration(t *testing.T) {
	w := newWorld(t, params(), "a")
	first := w.registration("b", nil, nil)
	r := w.apply(first)[0]
	if again := w.apply(first)[0]; again.Incarnation != r.Incarnation || again.Index != r.Index {
		t.Fatalf("the same boot again: %+v, first %+v", again, r)
	}
	thief := w.registration("b", nil, nil)
	thief.Body.(*command.Register).Node = [16]byte{9, 9}
	if r = w.apply(thief)[0]; r.Code != command.NameTaken {
		t.Fatalf("another data directory: %v", r.Code)
	}
	moved := w.registration("c", nil, nil)
	moved.Body.(*command.Register).Node = nodeOf("a")
	if r = w.apply(moved)[0]; r.Code != command.NameTaken {
		t.Fatalf("a's directory as c: %v", r.Code)
	}
	if err := w.s.Admit("c", nodeOf("a")); !errors.Is(err, ErrNameTaken) {
		t.Fatalf("admit: %v", err)
	}
	if err := w.s.Admit("c", nodeOf("c")); err != nil {
		t.Fatalf("admit a newcomer: %v", err)
	}
	if err := w.s.Admit("C!", nodeOf("c")); !errors.Is(err, command.ErrBadID) {
		t.Fatalf("admit a malformed name: %v", err)
	}
	if r = w.apply(w.registration("b", nil, nil))[0]; r.Incarnation != 2 {
		t.Fatalf("another boot: %+v", r)
	}
	if r = w.apply(first)[0]; r.Code != command.OldIncarnation {
		t.Fatalf("a late duplicate of the first boot: %v", r.Code)
	}
	old := w.registration("d", nil, nil)
	old.Body.(*command.Register).MaxVersion = 0
	if r = w.apply(old)[0]; r.Code != command.VersionTooNew {
		t.Fatalf("a broker too old: %v", r.Code)
	}
}

func TestSubmissions(t *testing.T) {
	w := newWorld(t, params(), "a")
	five, six := w.job("a", 1), w.job("a", 1)
	five.Num, six.Num = 5, 6
	if r := w.submit("a", five); r.Jobs != nil {
		t.Fatalf("%+v", r)
	}
	r := w.submit("a", five, six)
	if fmt.Sprint(r.Jobs) != fmt.Sprint([]command.Code{command.JobExists, command.OK}) {
		t.Fatalf("%+v", r)
	}
	r.Jobs[0] = command.OK // changes the caller's copy
	if again, _ := w.s.Result(command.ID{Site: "a", Incarnation: 1, Seq: w.seq["a"]}); again.Jobs[0] != command.JobExists {
		t.Fatal("a result was shared with the caller")
	}
	three, seven := five, five
	three.Num, seven.Num = 3, 7
	r = w.must("a", &command.Submit{Settled: 5, Jobs: []command.JobSpec{three, seven}})
	if fmt.Sprint(r.Jobs) != fmt.Sprint([]command.Code{command.JobRetired, command.OK}) {
		t.Fatalf("%+v", r)
	}
	bad := five
	bad.Num, bad.Count = 8, 0
	if r = w.do("a", &command.Submit{Jobs: []command.JobSpec{bad}}); r.Code != command.OutOfRange {
		t.Fatalf("count 0: %v", r.Code)
	}
	w.seq["a"]--
	if got := w.register("a"); got.NextJob != 8 {
		t.Fatalf("next job %d, want 8", got.NextJob)
	}
}

func TestShapesAreBounded(t *testing.T) {
	w := newWorld(t, params(), "a")
	for i := range int64(MaxShapes) { // half of them by their selectors
		j := w.job("a", 1)
		if j.Need.MemMiB = i / 2; i%2 == 1 {
			j.Selectors = []string{fmt.Sprintf("gpu=%d", i)}
		}
		w.submit("a", j)
	}
	more := w.job("a", 1)
	more.Selectors = []string{"gpu=more"}
	known := w.job("a", 1)
	if r := w.submit("a", more, known); r.Jobs[0] != command.TooManyShapes || r.Jobs[1] != command.OK {
		t.Fatalf("%+v", r.Jobs)
	}
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 7}, Task: -1})
	if r := w.submit("a", more); r.Jobs != nil {
		t.Fatalf("a shape has left the queue, still %+v", r.Jobs)
	}
}

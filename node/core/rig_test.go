package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/core/unseal"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/seal"
)

// tester is what both testing and rapid offer.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// rig is a federation of cores without goroutines, sockets or processes: a
// test decides when entries are ordered and when tasks end.
type rig struct {
	t     tester
	state *fsm.State
	now   time.Time
	// dateStep is by how much the date was set ahead of now.
	dateStep time.Duration
	// far is how long a command takes to be ordered.
	far   time.Duration
	sites []*rigSite
	boots byte
	// late, if set, is given what owners answer, for their askers to hear later.
	late func(*rigSite, Event)
}

type rigSite struct {
	rig     *rig
	name    string
	cores   int64
	runs    executor.Runs
	guard   Guard
	journal *record.Journal
	core    *Core
	// what the handler has: it survives the broker.
	running map[executor.ID]executor.Task
	began   map[executor.ID]time.Time
	ended   map[executor.ID]executor.Result
	// everything ever started here, in order.
	history []executor.ID
	stops   []executor.ID
	pending []command.Command // proposed, not ordered yet
	answers []node.Answer
	fence   int64 // as last told to the handler
	refuse  error // what the handler says to every start, nil = it starts
	// hold: the handler answers starts later; asked are those.
	hold  bool
	asked []StartEffect
	// unheard: its broker answers no other site's questions for keys, for that reason.
	unheard string
	asks    int // questions that it was asked
	files   rigFiles
}

// errSick is a handler's trouble that no task is to blame for.
var errSick = errors.New("no space left on device")

// newRig founds a federation; sites are named a, b, … with the given cores.
func newRig(t *testing.T, params command.Params, cores ...int64) *rig {
	t.Helper()
	return foundRig(t, func() (*record.Journal, error) { return record.OpenJournal(t.TempDir()) }, params, cores...)
}

// foundRig is newRig with the sites' journals from open.
func foundRig(t tester, open func() (*record.Journal, error), params command.Params, cores ...int64) *rig {
	t.Helper()
	r := &rig{t: t, state: fsm.New(), now: time.Unix(1_700_000_000, 0)}
	r.apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: [16]byte{1}, CreatedMs: r.now.UnixMilli(), Seed: 7, Params: params,
	}})
	r.now = r.now.Add(30 * time.Second)
	for i, n := range cores {
		s := &rigSite{
			rig: r, name: string(rune('a' + i)), cores: n, guard: Guard{Watchdog: true},
			running: map[executor.ID]executor.Task{}, began: map[executor.ID]time.Time{},
			ended: map[executor.ID]executor.Result{},
		}
		var err error
		if s.journal, err = open(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.journal.Close() })
		r.sites = append(r.sites, s)
		s.boot()
	}
	r.settle()
	return r
}

// apply orders one batch.
func (r *rig) apply(cmds ...command.Command) []command.Result {
	r.t.Helper()
	batch := command.Batch{Term: 1, Elapsed: r.now.UnixMilli() - 1_700_000_000_000, Commands: cmds}
	decoded, err := command.DecodeBatch(batch.Append(nil))
	if err != nil {
		r.t.Fatalf("a core proposed what does not decode: %v", err)
	}
	results, err := r.state.Apply(decoded)
	if err != nil {
		r.t.Fatalf("apply: %v", err)
	}
	return results
}

// boot starts the site's broker on its journal and on what its handler has.
func (s *rigSite) boot() {
	s.rig.t.Helper()
	held, lost := s.reopen()
	s.register(held, lost)
	s.lease(time.Hour)
}

// reopen is boot without a quorum; it returns what is to be registered.
func (s *rigSite) reopen() (held, lost []command.AttemptRef) {
	s.rig.t.Helper()
	s.pending = nil
	secrets, err := s.journal.Secrets()
	if err != nil {
		s.rig.t.Fatal(err)
	}
	s.core = New(seal.New(secrets[0], seal.Whose{Federation: [16]byte{1}, Site: s.name}), node.DefaultExposure())
	s.core.bounds.SetGuard("local", s.guard)
	s.openFiles()
	s.core.now, s.core.leastWindow = s.rig.clock(), 1000
	s.core.Capacity(CapacityEvent{"local", []executor.Machine{s.machine()}})
	var found []executor.State
	for id, task := range s.running {
		found = append(found, executor.State{Task: withID(task, id), Running: true, Started: s.began[id]})
	}
	for id, res := range s.ended {
		found = append(found, executor.State{Task: executor.Task{ID: id}, Ended: &res})
	}
	fx := &Effects{}
	if err = s.core.Recover(s.journal, map[string][]executor.State{"local": found}, fx); err != nil {
		s.rig.t.Fatal(err)
	}
	held, lost = s.core.Registration()
	s.perform(fx)
	return held, lost
}

// machine is what the site's handler has.
func (s *rigSite) machine() executor.Machine {
	return executor.Machine{
		Name: s.name + "-local", Resources: executor.Resources{MilliCPU: s.cores * 1000, MemMiB: 1024}, Runs: s.runs,
	}
}

// register presents the broker, as its shell does.
func (s *rigSite) register(held, lost []command.AttemptRef) {
	s.rig.t.Helper()
	s.rig.boots++
	boot := [16]byte{s.rig.boots}
	known, err := s.journal.Boot(boot)
	if err != nil {
		s.rig.t.Fatal(err)
	}
	results := s.rig.apply(command.Command{ID: command.ID{Site: s.name}, Body: &command.Register{
		Node: [16]byte{s.name[0]}, Boot: boot, Known: known, HTTP: "127.0.0.1:1", Peer: "127.0.0.1:2",
		MaxVersion: fsm.Version, Held: held, Lost: lost,
	}})
	if results[0].Code != command.OK {
		s.rig.t.Fatalf("register %s: %s", s.name, results[0].Code)
	}
	s.turn(RegisteredEvent{results[0], boot})
}

// lease renews the site's lease from now on.
func (s *rigSite) lease(d time.Duration) {
	s.rig.t.Helper()
	s.turn(LeaseEvent{Incarnation: s.core.incarnation, Until: s.rig.boottime() + int64(d)})
}

// boottime is the rig's CLOCK_BOOTTIME.
func (r *rig) boottime() int64 { return r.now.UnixNano() - 1_700_000_000e9 }

// clock is the rig's clocks.
func (r *rig) clock() Clock {
	return Clock{Wall: r.now.Add(r.dateStep), Boot: r.boottime(), Up: time.Duration(r.boottime())}
}

func withID(t executor.Task, id executor.ID) executor.Task { t.ID = id; return t }

// turn is one turn of the broker's loop.
func (s *rigSite) turn(evs ...Event) {
	s.rig.t.Helper()
	fx := &Effects{}
	s.core.now = s.rig.clock()
	for _, ev := range evs {
		s.core.Step(ev, s.rig.state, fx)
	}
	s.core.Settle(s.rig.state, fx)
	s.checkLists()
	s.checkReconciled()
	s.perform(fx)
}

// perform syncs and then plays handler, log and client.
func (s *rigSite) perform(fx *Effects) {
	s.rig.t.Helper()
	// Lazy writes are lost, as if each turn were followed by a crash: the tests
	// show that nothing depends on them.
	fx.Writes = slices.DeleteFunc(fx.Writes, func(w record.Write) bool { return w.Lazy })
	if err := s.journal.Commit(fx.Writes); err != nil {
		s.rig.t.Fatal(err)
	}
	for _, f := range fx.Forgets {
		delete(s.ended, f.ID)
	}
	for _, st := range fx.Stops {
		s.stops = append(s.stops, st.ID)
		s.unstage(st)
	}
	for _, e := range fx.Collects {
		s.hear(CollectedEvent{ID: e.ID, Result: e.Result, Output: s.files.output})
	}
	fx.Starts = slices.DeleteFunc(fx.Starts, s.stage)
	s.pending = append(s.pending, fx.Propose...)
	for _, reply := range fx.Replies {
		reply()
	}
	if fx.Fence != 0 {
		s.fence = fx.Fence
	}
	if fx.Register != nil {
		s.register(fx.Register.Held, fx.Register.Lost)
	}
	for _, a := range fx.Asks {
		if ev := s.rig.keysOf(s, a); s.rig.late != nil {
			s.rig.late(s, ev)
		} else {
			s.turn(ev)
		}
	}
	if s.hold {
		s.asked = append(s.asked, fx.Starts...)
		return
	}
	if s.refuse != nil {
		for _, st := range fx.Starts {
			s.turn(RefusedEvent{st.ID, s.refuse})
		}
		return
	}
	for _, st := range fx.Starts {
		if _, again := s.running[st.ID]; again {
			s.rig.t.Fatalf("%s started twice", st.ID)
		}
		s.running[st.ID], s.began[st.ID] = st.Task, s.rig.now
		s.history = append(s.history, st.ID)
	}
	for _, st := range fx.Starts {
		s.turn(AcceptedEvent{st.ID}, StartedEvent{st.ID})
	}
}

// keysOf is what an owner answers to a site.
func (r *rig) keysOf(s *rigSite, a KeyAsk) KeysEvent {
	owner := r.sites[a.Owner[0]-'a']
	owner.asks++
	ev := KeysEvent{Owner: a.Owner, Failed: owner.unheard}
	for _, ref := range a.Attempts {
		ev.Answers = append(ev.Answers, unseal.Answer(owner.core.sealer, s.name, ref, r.state))
	}
	return ev
}

// settle orders everything proposed until nothing moves any more.
func (r *rig) settle() {
	r.t.Helper()
	for range 1000 {
		var cmds []command.Command
		for _, s := range r.sites {
			cmds = append(cmds, s.pending...)
		}
		if len(cmds) == 0 {
			return
		}
		r.now = r.now.Add(r.far)
		results := r.apply(cmds...)
		for _, s := range r.sites {
			mine := s.pending
			s.pending = nil
			got := results[:len(mine)]
			results = results[len(mine):]
			s.turn(ResultEvent{Cmds: mine, Results: got})
		}
		for _, s := range r.sites {
			s.turn(StateEvent{})
		}
	}
	r.t.Fatal("the federation never settles")
}

// submit sends a spec to the site's broker, without ordering anything.
func (s *rigSite) submit(json string, key string) int { return s.submitBy("", json, key) }

// submitBy is submit by a user.
func (s *rigSite) submitBy(user, json, key string) int {
	s.rig.t.Helper()
	spec, err := jobspec.ParseSpec([]byte(json))
	if err != nil {
		s.rig.t.Fatal(err)
	}
	i := len(s.answers)
	s.answers = append(s.answers, node.Answer{Err: fmt.Errorf("unanswered")})
	req := node.Request{Spec: spec, Key: key, User: user}
	req.Meaning = spec.Meaning()
	s.turn(SubmitEvent{Reqs: []node.Request{req}, Reply: func(_ int, a node.Answer) { s.answers[i] = a }})
	return i
}

// promise has the site run one job at home and acknowledge a second one from
// its journal, because no order comes in time.
func (s *rigSite) promise() {
	s.rig.t.Helper()
	s.submit(sleepJob, "")
	i := s.submit(sleepJob, "")
	s.rig.now = s.rig.now.Add(publish.Patience)
	s.turn(TickEvent{})
	if got := s.answers[i]; got.Err != nil || got.Durability != node.DurableSite || !strings.Contains(got.Reason, "can start, as soon as there is one") {
		s.rig.t.Fatalf("answer after %s without an order: %+v", publish.Patience, got)
	}
}

// ticks lets n ticks of the broker's clock pass.
func (s *rigSite) ticks(n int) {
	s.rig.t.Helper()
	for range n {
		s.rig.now = s.rig.now.Add(TickEvery)
		s.turn(TickEvent{})
	}
}

// finish ends one running attempt with an exit code.
func (s *rigSite) finish(id executor.ID, exit int) {
	s.rig.t.Helper()
	if _, ok := s.running[id]; !ok {
		s.rig.t.Fatalf("%s does not run at %s", id, s.name)
	}
	delete(s.running, id)
	res := executor.Result{ExitCode: exit, Started: s.rig.now.Add(-time.Second), Run: time.Second}
	s.ended[id] = res
	s.turn(EndedEvent{id, res})
}

// only returns the one attempt that runs at the site.
func (s *rigSite) only() executor.ID {
	s.rig.t.Helper()
	if len(s.running) != 1 {
		s.rig.t.Fatalf("%d attempts run at %s, want 1", len(s.running), s.name)
	}
	for id := range s.running {
		return id
	}
	panic("unreachable")
}

func (r *rig) job(id string) fsm.JobView {
	r.t.Helper()
	jid, err := command.ParseJobID(id)
	if err != nil {
		r.t.Fatal(err)
	}
	v, ok := r.state.Job(jid)
	if !ok {
		r.t.Fatalf("the federation does not know job %s", id)
	}
	return v
}

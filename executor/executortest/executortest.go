// Package executortest is what every handler of step 6 must pass: the contract
// of package executor, shown by behaviour. It imports no handler.
package executortest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// patience bounds every wait of the suite, unless Env says otherwise; nothing
// should come near it.
const patience = 30 * time.Second

// Env is a handler's storage for one test.
type Env struct {
	// Open opens the handler, or opens it again after Close over what the
	// earlier one left. It has at least two free cores.
	Open func(t *testing.T) executor.Handler
	// Site is what CLOUDSHARE_SITE must be.
	Site string
	// Grace between TERM and KILL.
	Grace time.Duration
	// Slack is what a start may take beside what a process does.
	Slack time.Duration
	// Image in which tasks run, "" = bare commands. It has a shell and the usual
	// programs in /bin, and the test's temporary folders at their paths.
	Image string
	// Patience bounds every wait; 0 = 30 s.
	Patience time.Duration
	// Slow: a task takes seconds beside what it does, so what is shown by many is
	// shown by a few.
	Slow bool
	// Merged: what tasks write to stderr comes as stdout.
	Merged bool
}

// many is n, or less if tasks are slow.
func (r *rig) many(n int) int {
	if r.env.Slow {
		return max(n/10, 2)
	}
	return n
}

// Factory makes fresh storage.
type Factory func(t *testing.T) Env

// testCase is one behaviour of the contract.
type testCase struct {
	name string
	run  func(*rig)
}

// Run runs the suite, with the cases for the kind of fence that the handler has.
func Run(t *testing.T, f Factory) {
	t.Helper()
	runAll(t, f, []testCase{
		{"Finish", testFinish},
		{"ExitCode", testExitCode},
		{"Signal", testSignal},
		{"NoSuchCommand", testNoSuchCommand},
		{"Unfit", testUnfit},
		{"Kinds", testKinds},
		{"Timeout", testTimeout},
		{"Stop", testStop},
		{"StopTreeThatIgnoresTERM", testStopTree},
		{"StopUnknown", testStopUnknown},
		{"LeftoversDieWithTheTask", testLeftovers},
		{"LogsOfBothStreams", testLogs},
		{"FollowUntilTheEnd", testFollow},
		{"FollowCancelled", testFollowCancelled},
		{"FollowersOfOneAfterAnother", testFollowSeries},
		{"LogsUnknown", testLogsUnknown},
		{"Environment", testEnvironment},
		{"PrivateWorkdir", testWorkdir},
		{"StartTwiceRunsOnce", testDuplicate},
		{"Capacity", testCapacity},
		{"Busy", testBusy},
		{"AdoptRunning", testAdoptRunning},
		{"AdoptEnded", testAdoptEnded},
		{"AdoptedStop", testAdoptedStop},
		{"Forget", testForget},
		{"CloseLeavesAttempts", testCloseLeaves},
		{"EndKillsAll", testEnd},
		{"Published", testPublished},
		{"ManyInTurn", testMany},
	})
	RunFence(t, f)
}

// RunFence runs the cases of foreign attempts only: those of an Extender, or
// those of a Bounded handler.
func RunFence(t *testing.T, f Factory) {
	t.Helper()
	watchdog, bounded := false, false
	t.Run("FenceKind", func(t *testing.T) {
		r := newRig(t, f(t))
		_, watchdog = r.h.(executor.Extender)
		_, bounded = r.h.(executor.Bounded)
	})
	switch {
	case watchdog:
		runAll(t, f, []testCase{
			{"FenceKills", testFence},
			{"FenceMoves", testFenceMoves},
			{"FenceWithoutHandler", testFenceAlone},
			{"FencePassed", testFencePassed},
		})
	case bounded:
		runAll(t, f, []testCase{
			{"BoundHolds", testBound},
			{"BoundWithoutHandler", testBoundAlone},
			{"BoundNeedsALimit", testBoundLimit},
			{"BoundTooLate", testBoundLate},
		})
	}
}

func runAll(t *testing.T, f Factory, cases []testCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(newRig(t, f(t))) })
	}
}

// rig is one handler under test and what it has told so far.
type rig struct {
	*testing.T
	env     Env
	h       executor.Handler
	started map[executor.ID]bool
	ended   map[executor.ID]executor.Result
	next    uint32
}

func newRig(t *testing.T, env Env) *rig {
	t.Helper()
	env.Patience = cmp.Or(env.Patience, patience)
	r := &rig{T: t, env: env, started: map[executor.ID]bool{}, ended: map[executor.ID]executor.Result{}}
	r.open()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), env.Patience)
		defer cancel()
		if err := r.h.End(ctx); err != nil {
			t.Errorf("end: %v", err)
		}
	})
	return r
}

// open opens the handler and adopts.
func (r *rig) open() []executor.State {
	r.Helper()
	r.h = r.env.Open(r.T)
	states, err := r.h.Adopt(r.Context())
	r.must(err)
	return states
}

// reopen is a broker's restart.
func (r *rig) reopen() []executor.State {
	r.Helper()
	r.must(r.h.Close())
	return r.open()
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// task makes a task of its own id.
func (r *rig) task(command ...string) executor.Task {
	r.next++
	return executor.Task{
		ID:    executor.ID{Job: "site-1.42", Task: r.next, Attempt: 1, Token: uint64(100 + r.next)},
		Owner: "site-1", Site: r.env.Site, Machine: r.h.Capacity()[0].Name,
		Need: executor.Resources{MilliCPU: 1000}, Command: command, Image: r.env.Image,
	}
}

func (r *rig) shell(script string) executor.Task { return r.task("/bin/sh", "-c", script) }

func (r *rig) start(t executor.Task) executor.ID {
	r.Helper()
	r.must(r.h.Start(r.Context(), t))
	return t.ID
}

// run starts a task and waits for its end.
func (r *rig) run(t executor.Task) executor.Result {
	r.Helper()
	return r.end(r.start(t))
}

// hear takes events until enough says so.
func (r *rig) hear(what string, enough func() bool) {
	r.Helper()
	late := time.NewTimer(r.env.Patience)
	defer late.Stop()
	for !enough() {
		select {
		case e, ok := <-r.h.Events():
			if !ok {
				r.Fatalf("events closed while waiting for %s", what)
			}
			r.note(e)
		case <-late.C:
			r.Fatalf("no %s after %s", what, r.env.Patience)
		}
	}
}

func (r *rig) note(e executor.Event) {
	r.Helper()
	if e.Started {
		if r.started[e.ID] {
			r.Errorf("%s started twice", e.ID)
		}
		r.started[e.ID] = true
	}
	if e.Ended != nil {
		if _, twice := r.ended[e.ID]; twice {
			r.Errorf("%s ended twice", e.ID)
		}
		r.ended[e.ID] = *e.Ended
	}
}

func (r *rig) end(id executor.ID) executor.Result {
	r.Helper()
	r.hear(fmt.Sprintf("end of %s", id), func() bool { _, ok := r.ended[id]; return ok })
	return r.ended[id]
}

func (r *rig) running(id executor.ID) {
	r.Helper()
	r.hear(fmt.Sprintf("start of %s", id), func() bool { return r.started[id] })
}

// follow opens a stdout that ends with the attempt.
func (r *rig) follow(id executor.ID) *bufio.Reader {
	r.Helper()
	rc, err := r.h.Logs(r.Context(), id, "stdout", true)
	r.must(err)
	r.Cleanup(func() { rc.Close() })
	return bufio.NewReader(rc)
}

// line is the next line that the task writes.
func (r *rig) line(b *bufio.Reader) string {
	r.Helper()
	type got struct {
		s   string
		err error
	}
	ch := make(chan got, 1)
	go func() {
		s, err := b.ReadString('\n')
		ch <- got{s, err}
	}()
	select {
	case g := <-ch:
		r.must(g.err)
		return strings.TrimSuffix(g.s, "\n")
	case <-time.After(r.env.Patience):
		r.Fatal("no line of output")
		return ""
	}
}

// output is all that an ended attempt wrote.
func (r *rig) output(id executor.ID, stream string) string {
	r.Helper()
	rc, err := r.h.Logs(r.Context(), id, stream, false)
	r.must(err)
	defer rc.Close()
	b, err := io.ReadAll(rc)
	r.must(err)
	return string(b)
}

// find is the state of that id among states.
func (r *rig) find(states []executor.State, id executor.ID) executor.State {
	r.Helper()
	for _, s := range states {
		if s.ID == id {
			return s
		}
	}
	r.Fatalf("%s was not adopted: %v", id, states)
	return executor.State{}
}

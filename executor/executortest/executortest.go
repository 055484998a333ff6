// Package executortest is what every handler of step 6 must pass: the contract
// of package executor, shown by behaviour; and the rig for the tests of what is a
// handler's own. It imports no handler.
package executortest

import (
	"bufio"
	"slices"
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
	// Slack is what a start may take besides what a process does.
	Slack time.Duration
	// Image in which tasks run, "" = bare commands. It has a shell and the usual
	// programs in /bin, and the test's temporary folders at their paths.
	Image string
	// Shared is a folder that tasks see, "" = they see the test's temporary ones.
	Shared string
	// Patience bounds every wait; 0 = 30 s.
	Patience time.Duration
	// Slow: a task takes seconds besides what it does, so what is shown by many is
	// shown by a few.
	Slow bool
	// Merged: what tasks write to stderr comes as stdout.
	Merged bool
	// NoCores says why tasks are not held to their cores here; "" = they are.
	NoCores string
	// Break has the site unable to start tasks until the returned function is called;
	// nil: NoBreak says why that is not shown.
	Break   func(t *testing.T, h executor.Handler) (mend func())
	NoBreak string
}

// many returns n, or less if tasks are slow.
func (r *Rig) many(n int) int {
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
	run  func(*Rig)
}

// always are the cases for handlers of all kinds.
var always = []testCase{
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
	{"CoresHold", testCores},
	{"SiteTrouble", testSiteTrouble},
	{"Weighed", testWeighed},
	{"OrphanIsCharged", testOrphan},
}

// Run runs the suite, with the cases for the kind of fence that the handler has.
func Run(t *testing.T, f Factory) {
	t.Helper()
	runAll(t, f, always)
	RunFiles(t, f)
	runFence(t, f)
}

// RunFiles runs the cases of files: for a handler that takes none, that it refuses them.
func RunFiles(t *testing.T, f Factory) {
	t.Helper()
	collects := false
	t.Run("FileKind", func(t *testing.T) {
		r := newRig(t, f(t))
		if _, collects = r.Handler.(executor.Collector); !collects {
			testNoFiles(r)
		}
	})
	if collects {
		runAll(t, f, filed)
	}
}

// RunSome runs the named cases and those of the fence: for another way to start
// tasks of a handler that the whole suite is run on.
func RunSome(t *testing.T, f Factory, names ...string) {
	t.Helper()
	for _, name := range names {
		at := slices.IndexFunc(always, func(c testCase) bool { return c.name == name })
		if at < 0 {
			t.Fatalf("the suite has no case %s", name)
		}
		runAll(t, f, always[at:at+1])
	}
	runFence(t, f)
}

// runFence runs the cases of foreign attempts only: those of an Extender, or
// those of a Bounded handler.
func runFence(t *testing.T, f Factory) {
	t.Helper()
	watchdog, bounded := false, false
	t.Run("FenceKind", func(t *testing.T) {
		r := newRig(t, f(t))
		_, watchdog = r.Handler.(executor.Extender)
		_, bounded = r.Handler.(executor.Bounded)
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

// newRig opens a handler that ends with its test.
func newRig(t *testing.T, env Env) *Rig {
	t.Helper()
	r := NewRig(t, env)
	t.Cleanup(r.EndAll)
	return r
}

// reopen returns a broker's restart.
func (r *Rig) reopen() []executor.State {
	r.Helper()
	r.Must(r.Close())
	return r.Open()
}

// machine returns the handler's first one, once it has one: an engine may be away for a
// moment, and at first it has not been asked.
func (r *Rig) machine() (m executor.Machine) {
	r.Helper()
	r.Hear("a machine", func() bool {
		ms := r.Capacity()
		if len(ms) > 0 {
			m = ms[0]
		}
		return len(ms) > 0
	})
	return m
}

// task is for the handler's first machine.
func (r *Rig) task(command ...string) executor.Task {
	r.Helper()
	return r.Task(r.machine().Name, command...)
}

func (r *Rig) shell(script string) executor.Task { return r.task("/bin/sh", "-c", script) }

// run starts a task and waits for its end.
func (r *Rig) run(t executor.Task) executor.Result {
	r.Helper()
	return r.AwaitEnd(r.Begin(t))
}

// followStdout opens a stdout that ends with the attempt.
func (r *Rig) followStdout(id executor.ID) *bufio.Reader {
	r.Helper()
	rc, err := r.Logs(r.Context(), id, "stdout", true)
	r.Must(err)
	r.Cleanup(func() { rc.Close() })
	return bufio.NewReader(rc)
}

// line returns the next line that the task writes.
func (r *Rig) line(b *bufio.Reader) string {
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
		r.Must(g.err)
		return strings.TrimSuffix(g.s, "\n")
	case <-time.After(r.env.Patience):
		r.Fatal("no line of output")
		return ""
	}
}

// find returns the state of that id among states.
func (r *Rig) find(states []executor.State, id executor.ID) executor.State {
	r.Helper()
	for _, s := range states {
		if s.ID == id {
			return s
		}
	}
	r.Fatalf("%s was not adopted: %v", id, states)
	return executor.State{}
}

package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/sched"
)

// Many large jobs must go out in several calls: one over the log's limit stopped
// the broker, and again after each restart.
func TestCallsStayUnderTheLogsLimit(t *testing.T) {
	var cmds []command.Command
	for range 40 {
		cmds = append(cmds, command.Command{Body: &command.Submit{Jobs: []command.JobSpec{{Payload: make([]byte,
			500_000)}}}})
	}
	for range 1000 {
		cmds = append(cmds, command.Command{Body: &command.Cancel{}})
	}
	calls := 0
	for ; len(cmds) > 0; calls++ {
		n := callSize(cmds)
		size := 0
		for _, c := range cmds[:n] {
			size += len(command.Append(nil, c))
		}
		if n == 0 || n > maxCallCommands || size > maxCallBytes+1<<20 {
			t.Fatalf("call of %d commands, %d bytes", n, size)
		}
		cmds = cmds[n:]
	}
	if calls < 10 {
		t.Errorf("%d calls", calls)
	}
}

// What was accepted without a quorum stands in the list, too.
func TestListShowsWhatIsOnItsWay(t *testing.T) {
	a := startSites(t, 1)[0]
	a.accept(t, sleepJob)
	a.group.Cut("site-1")
	a.group.Tick()
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	go a.Submit(t.Context(), []node.Request{{Spec: spec}})
	known := func(c *core.Core) bool { _, _, known := c.Own().Record(2); return known }
	a.until(t.Context(), known)
	page, err := a.Jobs(t.Context(), node.JobQuery{Limit: 10})
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("%d jobs listed, %v; want both", len(page.Items), err)
	}
	if page.Items[0].ID.Num != 2 && page.Items[1].ID.Num != 2 {
		t.Errorf("listed %s and %s", page.Items[0].ID, page.Items[1].ID)
	}
}

// A client that stops waiting is not told that the broker stops.
func TestImpatientClientIsToldTheTruth(t *testing.T) {
	a := startSites(t, 1)[0]
	a.accept(t, sleepJob)
	a.group.Cut("site-1")
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	got := a.Submit(ctx, []node.Request{{Spec: spec}})[0]
	if got.Err == nil || errors.Is(got.Err, node.ErrStopping) || !errors.Is(got.Err, context.DeadlineExceeded) {
		t.Errorf("answer %+v", got)
	}
}

// Parameters that would strand everybody are refused with their names.
func TestParamsThatStrandAreRefused(t *testing.T) {
	now := command.DefaultParams()
	for name, change := range map[string]func(*command.Params){
		"lease_ms":    func(p *command.Params) { p.LeaseMs = 1 },
		"retain_jobs": func(p *command.Params) { p.RetainJobs = 0 },
		"retain_ms":   func(p *command.Params) { p.RetainMs = 0 },
		"choose CE":   func(p *command.Params) { p.Policy = sched.Shapley },
		"ALONE, CE":   func(p *command.Params) { p.Policy = "BEST" }, // SHAPLEY was offered, too
		"running":     func(p *command.Params) { p.Running = 2 },
	} {
		p := now
		change(&p)
		err := checkParams(now, p)
		if !errors.Is(err, node.ErrBadParams) || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), sched.Shapley) != (p.Policy == sched.Shapley) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A broker that was started without a quorum said of everything that it had not
// read yet that it was not there, and of what it had published that it was not.
func TestUnreadStateIsNotTakenForTheTruth(t *testing.T) {
	sites := startSites(t, 1, 1)
	a := sites[0]
	a.accept(t, sleepJob)              // at home
	published := a.accept(t, sleepJob) // at b
	away := command.JobID{Site: "site-2", Num: 1}
	if _, err := a.Job(t.Context(), published.ID); err != nil || a.Current() != nil {
		t.Fatalf("before: %v, %v", err, a.Current())
	}
	a.stop(t)
	a.group.Cut("site-1")
	a.handler = a.handler.reopen()
	a.open(t)
	if _, err := a.Job(t.Context(), command.JobID{Site: "site-1", Num: 1}); err != nil {
		t.Errorf("the job at home: %v", err)
	}
	for _, id := range []command.JobID{away, {Site: "site-1", Num: 77}} {
		if _, err := a.Job(t.Context(), id); !errors.Is(err, node.ErrNotReady) || errors.Is(err, node.ErrNotFound) {
			t.Errorf("job %s: %v, want that the state is not known", id, err)
		}
	}
	if j, err := a.Job(t.Context(), published.ID); err == nil && !strings.Contains(j.Reason, "once there is a quorum") {
		t.Errorf("the published job is %s: %q", j.State, j.Reason)
	}
	if err := a.Current(); !errors.Is(err, node.ErrNotReady) {
		t.Errorf("the state: %v", err)
	}
}

// TestCancelsStandBehindTheirSubmit: what cancels a job that is just submitted is sent with it, behind its record, and
// no call parts the two; other cancellations wait for no record.
func TestCancelsStandBehindTheirSubmit(t *testing.T) {
	cancel := func(num uint64) command.Command {
		return command.Command{Body: &command.Cancel{Job: command.JobID{Site: "a", Num: num}, Task: -1}}
	}
	cmds := []command.Command{cancel(1)}
	for i := range uint64(3) {
		submit := &command.Submit{Jobs: make([]command.JobSpec, core.MaxBehind)}
		for k := range submit.Jobs {
			submit.Jobs[k].Num = 1000*i + uint64(k)
		}
		cmds = append(cmds, command.Command{Body: submit})
		for k := range submit.Jobs {
			cmds = append(cmds, cancel(submit.Jobs[k].Num))
		}
		cmds = append(cmds, cancel(5000+i))
	}
	ready, recorded := splitReady(cmds)
	if len(ready) != 4 || len(recorded) != 3*maxCallCommands {
		t.Fatalf("%d wait for no record, %d do", len(ready), len(recorded))
	}
	for calls := 0; len(recorded) > 0; calls++ {
		n := callSize(recorded)
		if _, ok := recorded[0].Body.(*command.Submit); !ok || n != maxCallCommands {
			t.Fatalf("call %d has %d commands and begins with %T", calls, n, recorded[0].Body)
		}
		recorded = recorded[n:]
	}
}

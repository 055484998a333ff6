package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestPaper plays the worked example of the paper (theory.md §4) through real
// commands: testdata/paper. Times are quanta of one millisecond.
//
//	job name=A1 site=a at=0 run=2 [cpu=1]
//	play policy=ORIG_DIRECT mode=partial     → what each machine ran
func TestPaper(t *testing.T) {
	datadriven.Walk(t, "testdata/paper", func(t *testing.T, path string) {
		var jobs []play
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "job":
				p := play{cpu: 1}
				d.ScanArgs(t, "name", &p.name)
				d.ScanArgs(t, "site", &p.site)
				d.ScanArgs(t, "at", &p.at)
				d.ScanArgs(t, "run", &p.run)
				d.MaybeScanArgs(t, "cpu", &p.cpu)
				jobs = append(jobs, p)
				return ""
			case "play":
				var policy, mode string
				d.ScanArgs(t, "policy", &policy)
				d.ScanArgs(t, "mode", &mode)
				m, err := sched.ParseMode(mode)
				if err != nil {
					t.Fatal(err)
				}
				p := params()
				p.Policy, p.Running = policy, m
				return playAll(t, p, jobs)
			}
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

// play is one task of an example: when it arrives and how long it runs.
type play struct {
	name, site string
	at, run    int64
	cpu        int64
}

// playAll runs the jobs on one machine of one core a site until all have ended. In each quantum completions and
// arrivals share an entry, so they precede its matching; starts follow in the next one.
func playAll(t *testing.T, p command.Params, jobs []play) string {
	w := newWorld(t, p, "a", "b")
	w.apply(w.cmd("a", w.offering("a", 1)), w.cmd("b", w.offering("b", 1)))
	var chart []string
	byID := map[command.JobID]play{}
	started := map[command.AttemptRef]int64{}
	for now, left := int64(0), len(jobs); left > 0; now++ {
		w.at(now)
		var cmds []command.Command
		for _, site := range []string{"a", "b"} {
			for _, a := range w.s.Assignments(site) {
				j := byID[a.Job]
				if s := started[a.AttemptRef]; s+j.run == now {
					cmds = append(cmds, w.cmd(site, &command.Complete{Attempts: []command.Ended{ended(
						a, command.Succeeded, j.run,
					)}}))
					chart = append(chart, fmt.Sprintf("%s %s[%d,%d)", site, j.name, s, now))
					left--
				}
			}
		}
		for _, j := range jobs {
			if j.at == now {
				spec := w.job(j.site, 1)
				spec.Need.MilliCPU = j.cpu * 1000
				byID[command.JobID{Site: j.site, Num: spec.Num}] = j
				cmds = append(cmds, w.cmd(j.site, &command.Submit{Jobs: []command.JobSpec{spec}}))
			}
		}
		w.apply(cmds...)
		for _, site := range []string{"a", "b"} {
			for _, a := range w.s.Assignments(site) {
				if _, ok := started[a.AttemptRef]; !ok {
					started[a.AttemptRef] = now
					w.must(site, &command.Started{Attempts: []command.StartedAttempt{{
						AttemptRef: a.AttemptRef, DelayMs: 0,
					}}})
				}
			}
		}
		w.check()
	}
	return drawChart(chart)
}

// drawChart returns a line per site, in order of start.
func drawChart(chart []string) string {
	var out strings.Builder
	for _, site := range []string{"a", "b"} {
		fmt.Fprintf(&out, "M%s:", strings.ToUpper(site))
		for _, c := range chart {
			if s, bar, _ := strings.Cut(c, " "); s == site {
				fmt.Fprintf(&out, " %s", bar)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestScripts plays the scripts in testdata/scripts: commands of sites, one entry each unless joined by `batch`,
// and what the state shows afterwards. `go test ./fsm -run TestScripts -rewrite` renews them: read every change.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t, s.d = t, d
			out := s.run()
			if s.w != nil {
				s.w.check()
				r, err := reborn(s.w.s)
				if err != nil {
					t.Fatalf("%s: %v", d.Pos, err)
				}
				s.w.s = r // every later line runs on a restored state
			}
			return out
		})
	})
}

type script struct {
	t *testing.T
	d *datadriven.TestData
	w *world
	// last has each attempt by its task, so that a script can report on one that is no longer live.
	last map[string]Assignment
}

func (s *script) run() string {
	switch s.d.Cmd {
	case "new":
		return s.create()
	case "at":
		s.scan("t", &s.w.base)
		s.w.apply()
		return s.show()
	case "register":
		return s.register()
	case "recover":
		return s.recover()
	case "show":
		return s.show()
	case "tasks":
		return s.tasks()
	case "version":
		return fmt.Sprintf("version %d, all know %d\n", s.w.s.Version(), s.w.s.NextVersion())
	case "why":
		v, _ := s.w.s.Job(s.job())
		return v.Reason + "\n"
	case "ledger":
		return s.ledger()
	}
	site := s.str("site")
	body := s.body(site)
	if body == nil {
		s.t.Fatalf("%s: unknown command %q", s.d.Pos, s.d.Cmd)
	}
	r := s.w.do(site, body)
	out := ""
	if r.Code != command.OK || r.Jobs != nil {
		out = fmt.Sprintf("refused: %v %v\n", r.Code, r.Jobs)
	}
	return out + s.show()
}

func (s *script) body(site string) command.Body {
	switch s.d.Cmd {
	case "submit":
		return s.submit(site)
	case "offer":
		return s.offer(site)
	case "started":
		return &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: s.ref(), DelayMs: s.num("delay", 0)}}}
	case "done":
		return s.done()
	case "decline":
		c := &command.Decline{Attempts: []command.AttemptRef{s.ref()}, Reason: "no room"}
		if s.str("cores") != "" {
			c.Offer = s.offer(site)
		}
		return c
	case "deliver":
		o := map[string]command.Delivery{"ok": command.DeliveryOK, "lost": command.DeliveryLost, "failed": command.DeliveryFailed}
		return &command.Deliver{Attempts: []command.Delivered{{AttemptRef: s.ref(), Outcome: o[s.str("outcome")]}}}
	case "cancel":
		return &command.Cancel{Job: s.job(), Task: s.num("task", -1)}
	case "lost":
		who := s.str("who")
		return &command.SiteLost{Site: who, Incarnation: s.w.inc[who], Term: uint64(s.num("term", int64(s.w.term)))}
	case "bound":
		return &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: s.ref(), BoundMs: s.num("ms", 1)}}}
	case "leave":
		return &command.Leave{}
	case "raise":
		return &command.Raise{Version: uint32(s.num("version", Version))}
	case "forget":
		return &command.Forget{Site: s.str("who")}
	case "suspect":
		who := s.str("who")
		return &command.Suspect{Site: who, Incarnation: s.w.inc[who], On: s.str("on") != "no"}
	case "usage":
		return &command.Usage{Batch: uint64(s.num("batch", 1)), Rows: []command.UsageRow{{
			Job: 1, Need: command.Resources{MilliCPU: 1000}, AgoMs: s.num("ago", 0), RunMs: s.num("run", 0), WaitMs: s.num("wait", 0),
		}}}
	}
	return nil
}

func (s *script) scan(key string, into *int64) { s.d.ScanArgs(s.t, key, into) }

func (s *script) num(key string, def int64) int64 {
	s.d.MaybeScanArgs(s.t, key, &def)
	return def
}

func (s *script) str(key string) string {
	var v string
	s.d.MaybeScanArgs(s.t, key, &v)
	return v
}

// create reads the parameters that differ from params().
func (s *script) create() string {
	p := params()
	if v := s.str("policy"); v != "" {
		p.Policy = v
	}
	p.PreferOwn = s.str("prefer_own") == "yes"
	p.ReserveAfterMs = s.num("reserve", 0)
	p.DepartureMs = s.num("departure", p.DepartureMs)
	p.RetainMs, p.RetainJobs = s.num("retain_ms", p.RetainMs), s.num("retain_jobs", p.RetainJobs)
	s.w = newWorld(s.t, p, strings.Split(s.str("sites"), "+")...)
	s.last = map[string]Assignment{}
	return ""
}

// register registers a site again; held and lost name tasks joined by +, knows is the newest apply version of its
// broker.
func (s *script) register() string {
	site := s.str("site")
	refs := func(key string) (out []command.AttemptRef) {
		for _, name := range strings.FieldsFunc(s.str(key), func(r rune) bool { return r == '+' }) {
			out = append(out, s.last[name].AttemptRef)
		}
		return out
	}
	c := s.w.registration(site, refs("held"), refs("lost"))
	if reg, ok := c.Body.(*command.Register); ok {
		reg.MaxVersion = uint32(s.num("knows", Version))
	}
	r := s.w.apply(c)[0]
	if r.Code != command.OK {
		return fmt.Sprintf("refused: %v\n", r.Code)
	}
	s.w.inc[site], s.w.seq[site], s.w.offer[site] = r.Incarnation, 0, 0
	return fmt.Sprintf("%v: incarnation %d, next job %d, next usage %d\n", r.Code, r.Incarnation, r.NextJob, r.NextUsage) + s.show()
}

// recover begins an epoch at a site; hold is in milliseconds.
func (s *script) recover() string {
	r := s.w.apply(command.Command{
		ID:   command.ID{Site: s.str("site")},
		Body: &command.Recover{Epoch: uint64(s.num("epoch", 1)), HoldMs: s.num("hold", 0)},
	})[0]
	at := s.w.s.Index()
	return fmt.Sprintf(
		"%v: epoch %d, entry %d of it, held for %d ms\n", r.Code, command.EpochOf(at),
		at-command.StartOf(command.EpochOf(at)), s.w.s.HeldMs(),
	) + s.show()
}

func (s *script) submit(site string) command.Body {
	j := s.w.job(site, uint32(s.num("count", 1)))
	j.Need.MilliCPU = s.num("cpu", 1) * 1000
	j.Priority, j.MaxAttempts = int32(s.num("priority", 0)), uint32(s.num("attempts", 1))
	j.TimeoutMs, j.Image, j.Delivers = s.num("timeout", 0), s.str("image") == "yes", s.str("outputs") == "yes"
	if v := s.str("only"); v != "" {
		j.Only = strings.Split(v, "+")
	}
	if v := s.str("not"); v != "" {
		j.Not = strings.Split(v, "+")
	}
	if v := s.str("select"); v != "" { // + for a comma, / between two
		j.Selectors = strings.Split(strings.ReplaceAll(strings.ReplaceAll(v, "+", ","), "_", " "), "/")
	}
	j.OnLoss = map[string]command.OnLoss{
		"": command.Fenced, "fenced": command.Fenced, "immediate": command.Immediate, "never": command.Never,
	}[s.str("on_loss")]
	return &command.Submit{Jobs: []command.JobSpec{j}}
}

func (s *script) offer(site string) *command.Offer {
	var cores []int64
	for _, c := range strings.FieldsFunc(s.str("cores"), func(r rune) bool { return r == '+' }) {
		var n int64
		if _, err := fmt.Sscan(c, &n); err != nil {
			s.t.Fatal(err)
		}
		cores = append(cores, n)
	}
	o := s.w.offering(site, cores...)
	// + stands for a comma, / separates machines.
	for i, l := range strings.FieldsFunc(s.str("labels"), func(r rune) bool { return r == '/' }) {
		o.Machines[i].Labels = command.Labels(strings.ReplaceAll(strings.ReplaceAll(l, "+", ","), "none", ""))
	}
	runs := map[string]command.Runs{"": command.RunsCommands, "images": command.RunsImages, "both": command.RunsBoth}[s.str("runs")]
	for i := range o.Machines {
		o.Machines[i].Runs, o.Machines[i].Slots = runs, s.num("slots", 0)
	}
	return o
}

func (s *script) ref() command.AttemptRef {
	a, ok := s.last[s.str("task")]
	if !ok {
		s.t.Fatalf("%s: no attempt of %s was ever seen", s.d.Pos, s.str("task"))
	}
	return a.AttemptRef
}

func (s *script) done() command.Body {
	o := map[string]command.Outcome{
		"": command.Succeeded, "succeeded": command.Succeeded, "failed": command.Failed,
		"timeout": command.TimedOut, "stopped": command.Stopped, "lost": command.Lost, "orphaned": command.Orphaned,
	}
	e := command.Ended{
		AttemptRef: s.ref(), Outcome: o[s.str("outcome")], RunMs: s.num("run", 0), DelayMs: s.num("delay", 0),
		ExitCode: int32(s.num("exit", 0)),
	}
	if n := s.num("bytes", 0); n > 0 {
		e.Output = command.Output{Manifest: [32]byte{1}, Size: 100, Bytes: n}
	}
	if e.Outcome == command.Orphaned {
		return &command.Orphans{Attempts: []command.Ended{e}}
	}
	return &command.Complete{Attempts: []command.Ended{e}}
}

func (s *script) job() command.JobID {
	id, err := command.ParseJobID(s.str("job"))
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// show prints every job with its counts, then every live attempt by machine.
func (s *script) show() string {
	var out strings.Builder
	jobs, _ := s.w.s.Jobs(JobFilter{}, 0, 100)
	slices.Reverse(jobs)
	for _, j := range jobs {
		fmt.Fprintf(&out, "%s %s:", j.ID, j.State)
		for st, n := range j.Counts {
			if n > 0 {
				fmt.Fprintf(&out, " %d %s", n, TaskState(st))
			}
		}
		if j.Reason != "" && j.State != Queued {
			fmt.Fprintf(&out, " (%s)", j.Reason)
		}
		out.WriteString("\n")
	}
	for _, x := range s.w.s.Sites() {
		for _, m := range x.Machines {
			if m.Reserved != "" {
				fmt.Fprintf(&out, "%s/%s is held for %s\n", x.ID, m.Name, m.Reserved)
			}
		}
		for _, a := range s.w.s.Assignments(x.ID) {
			name := fmt.Sprintf("%s/%d", a.Job, a.Task)
			s.last[name] = a
			fmt.Fprintf(&out, "%s/%s: %s attempt %d", x.ID, a.Machine, name, a.Attempt)
			if a.Stop {
				fmt.Fprintf(&out, ", to stop: %s", a.StopWhy)
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

func (s *script) tasks() string {
	var out strings.Builder
	list, _ := s.w.s.Tasks(s.job(), 0, 100)
	for _, v := range list {
		orphans := ""
		if v.Orphans > 0 {
			orphans = fmt.Sprintf(" orphans %d", v.Orphans)
		}
		fmt.Fprintf(&out, "%d %s at %q attempt %d queued %d assigned %d started %d ended %d exit %d failures %d losses %d%s %q\n",
			v.Index, v.State, v.Site, v.Attempt, v.QueuedMs, v.AssignedMs, v.StartedMs, v.EndedMs,
			v.ExitCode, v.Failures, v.Losses, orphans, v.Reason)
	}
	return out.String()
}

func (s *script) ledger() string {
	var out strings.Builder
	l := s.w.s.Ledger()
	fmt.Fprintf(&out, "at %d in %s\n", l.TimeMs, l.Unit)
	for _, a := range l.Sites {
		fmt.Fprintf(&out, "%s: %s - %s = %s\n", a.Site, a.Contribution, a.Utility, a.Priority)
	}
	for _, c := range l.Matrix {
		fmt.Fprintf(&out, "%s on %s: %d tasks A=%s B=%s R=%s\n", c.Owner, c.Executor, c.Tasks, c.A, c.B, c.R)
	}
	return out.String()
}

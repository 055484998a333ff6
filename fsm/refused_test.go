package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestRefusedCopiesAreNeverExecuted has a command refused with each code there is, changes everything that
// a refusal can depend on, and gives copies of the command in between: none changes anything. Whoever was
// told "refused" may rely on it.
func TestRefusedCopiesAreNeverExecuted(t *testing.T) {
	codes := []command.Code{command.NotHeld}
	for code := command.Stale; code < command.Busy; code++ { // Busy: TestEntryFullOfSignatures
		codes = append(codes, code)
	}
	for _, code := range codes {
		t.Run(code.String(), func(t *testing.T) {
			build := refusals[code]
			if build == nil {
				t.Fatal("nothing here is refused so: every code needs a case")
			}
			w := newWorld(t, params(), "a", "b")
			w.withQuotas(func(b *bounds) {
				b.shapes, b.tasks, b.jobs, b.bytes = 3, share{20, 10}, share{10, 5}, share{200, 100}
				b.kept, b.gaps = share{4, 2}, 1
			})
			c := build(w)
			copied(t, w, c, code)
			for i, change := range refusalChanges {
				change(w)
				copied(t, w, c, code)
				if t.Failed() {
					t.Fatalf("after change %d", i)
				}
			}
		})
	}
}

// copied applies a copy of a refused command next to an empty entry: both states must be equal, except for what the
// copy acknowledges.
func copied(t *testing.T, w *world, c command.Command, first command.Code) {
	t.Helper()
	twin, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	if x := twin.byName[c.ID.Site]; x != nil && x.incarnation == c.ID.Incarnation && x.present() &&
		c.Ack < c.ID.Seq && c.ID.Seq-c.Ack <= twin.bounds.window {
		x.raise(c.Ack)
	}
	r := w.apply(c)[0]
	if _, err := twin.Apply(&command.Batch{Term: w.term, Elapsed: w.base}); err != nil {
		t.Fatal(err)
	}
	if r.Code == command.OK && !slices.Contains(r.Jobs, first) {
		t.Errorf("refused as %q, a copy of it gives %+v", first, r)
	}
	if w.s.window(c.ID) != nil { // its result was recorded with the first copy
		twin.byName[c.ID.Site].window = w.s.byName[c.ID.Site].window
	}
	if w.s.Hash() != twin.Hash() {
		t.Errorf("refused as %q, a copy of it changed the state", first)
	}
	w.check()
}

// window returns a command's recorded result, nil if there is none.
func (s *State) window(id command.ID) *command.Result {
	r, ok := s.Result(id)
	if !ok {
		return nil
	}
	return &r
}

// refusals make a command that is refused with each code; what its site tells the state in a Submit may be the code
// of a job.
var refusals = map[command.Code]func(w *world) command.Command{
	command.Stale: func(w *world) command.Command {
		c := w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
		w.must("a", &command.Addresses{})
		w.seq["a"]++
		w.must("a", &command.Addresses{})
		return c
	},
	command.WindowFull: func(w *world) command.Command {
		c := w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
		c.ID.Seq += command.Window + 1
		return c
	},
	command.OldIncarnation: func(w *world) command.Command {
		c := w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
		w.must("b", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term})
		return c
	},
	command.UnknownSite: func(w *world) command.Command {
		return w.cmd("a", &command.Suspect{Site: "late", Incarnation: 1, On: true})
	},
	command.NameTaken: func(w *world) command.Command {
		c := w.registration("a", nil, nil)
		c.Body.(*command.Register).Node = nodeOf("thief")
		return c
	},
	command.UnknownJob: func(w *world) command.Command {
		return w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	},
	command.NotOwner: func(w *world) command.Command {
		return w.cmd("b", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	},
	command.AlreadyEnded: func(w *world) command.Command {
		w.submit("a", w.job("a", 1))
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
		return w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	},
	command.NotHeld: func(w *world) command.Command {
		w.must("a", &command.Raise{Version: command.GatesVersion})
		j := w.job("a", 2)
		j.Gated = true
		w.submit("a", j)
		return w.cmd("a", releasing(j.Num, command.GateRun{To: 2, Attempt: 1}))
	},
	command.JobExists: func(w *world) command.Command {
		j := w.job("a", 1)
		w.submit("a", j)
		return w.cmd("a", &command.Submit{Jobs: []command.JobSpec{j}})
	},
	command.JobRetired: func(w *world) command.Command {
		j := w.job("a", 1)
		w.must("a", &command.Submit{Settled: 9})
		return w.cmd("a", &command.Submit{Settled: 9, Jobs: []command.JobSpec{j}})
	},
	command.TooManyShapes: func(w *world) command.Command {
		for i := range int64(3) {
			j := w.job("a", 1)
			j.Need.MilliCPU += i + 1
			w.submit("a", j)
		}
		return w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
	},
	command.TooManyJobs: func(w *world) command.Command {
		for range 5 {
			w.submit("a", w.job("a", 1))
		}
		return w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
	},
	command.TooManyTasks: func(w *world) command.Command {
		w.submit("a", w.job("a", 4))
		return w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 7)}})
	},
	command.TooManyBytes: func(w *world) command.Command {
		w.submit("a", w.job("a", 1))
		j := w.job("a", 1)
		j.Payload = make([]byte, 97)
		return w.cmd("a", &command.Submit{Jobs: []command.JobSpec{j}})
	},
	command.TooManyNumbers: func(w *world) command.Command {
		for range 8 { // two are kept, and a range for each of the others
			w.num["a"]++
			j := w.job("a", 1)
			w.submit("a", j)
			w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: j.Num}, Task: -1})
		}
		w.num["a"]++
		return w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
	},
	command.OutOfRange: func(w *world) command.Command {
		w.submit("a", w.job("a", 1))
		return w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: 7})
	},
	command.BadParams: func(w *world) command.Command {
		p := w.s.params
		p.LeaseMs++
		return w.cmd("a", &command.SetParams{Params: p})
	},
	command.OldTerm: func(w *world) command.Command {
		return w.cmd("b", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term + 1})
	},
	command.OldOffer: func(w *world) command.Command {
		o := w.offering("b", 1)
		w.must("b", w.offering("b", 2))
		return w.cmd("b", o)
	},
	command.OutOfOrder: func(w *world) command.Command {
		return w.cmd("a", &command.Usage{
			Batch: 2, Rows: []command.UsageRow{{Job: 1, Need: command.Resources{MilliCPU: 1}, RunMs: 5}},
		})
	},
	command.AlreadyFounded: func(w *world) command.Command {
		return command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{Params: params()}}
	},
	command.NotFounded: func(w *world) command.Command {
		w.s.founded = 0 // a copy of this from before the genesis is from a broker that had no incarnation
		c := w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
		c.ID.Incarnation = 0
		if r := w.apply(c)[0]; r.Code != command.NotFounded {
			w.t.Fatal(r)
		}
		w.s.founded = 1
		return c
	},
	command.VersionTooNew: func(w *world) command.Command {
		return w.cmd("a", &command.Raise{Version: Version + 1})
	},
	command.OlderData: func(w *world) command.Command {
		c := w.registration("b", nil, nil)
		c.Body.(*command.Register).Known = [][16]byte{{200}}
		return c
	},
	command.PolicySites: func(w *world) command.Command {
		for i := range sched.MaxSites(sched.Shapley) {
			w.register("s" + string(rune('a'+i)))
		}
		p := w.s.params
		p.Policy = sched.Shapley
		return w.cmd("a", &command.SetParams{Params: p})
	},
	command.NotMember: func(w *world) command.Command {
		w.refound("a", "b")
		return w.registration("late", nil, nil)
	},
	command.Banned: func(w *world) command.Command {
		w.refound("a", "b", "c")
		w.must("a", &command.Motion{What: command.MotionBan, Site: "c"})
		w.must("b", &command.Motion{What: command.MotionBan, Site: "c"})
		return w.registration("c", nil, nil)
	},
	command.NotElector: func(w *world) command.Command {
		w.refound("a", "b")
		w.must("a", &command.Motion{What: command.MotionNoElector, Site: "b"})
		w.must("b", &command.Motion{What: command.MotionNoElector, Site: "b"})
		r := w.must("a", w.invite("c"))
		return w.cmd("b", &command.Vote{Motion: r.Motion, Yes: true})
	},
	command.NeedsMotion: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("a", &command.SetParams{Params: w.s.params})
	},
	command.UnknownInvitation: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("a", w.admission("c", "no invitation", "c"))
	},
	command.InvitationUsed: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("a", w.admission("b", "invitation of b", "thief"))
	},
	command.InvitationExpired: func(w *world) command.Command {
		w.refound("a", "b")
		w.must("a", &command.Invite{Key: w.public("1"), Site: "c", ForMs: 1})
		w.at(w.base + 1)
		return w.cmd("a", w.admission("c", "1", "c"))
	},
	command.InvitationRevoked: func(w *world) command.Command {
		w.refound("a", "b")
		w.must("a", w.invite("c"))
		w.must("a", &command.Revoke{Key: w.public("invitation of c")})
		return w.cmd("a", w.admission("c", "invitation of c", "c"))
	},
	command.InvitationOther: func(w *world) command.Command {
		w.refound("a", "b")
		w.must("a", w.invite("c"))
		return w.cmd("a", w.admission("d", "invitation of c", "d"))
	},
	command.Pending: func(w *world) command.Command {
		w.refound("a", "b")
		w.must("a", w.invite("c"))
		w.wants("a", w.admission("c", "invitation of c", "c"), command.Pending)
		return w.cmd("a", w.admission("c", "invitation of c", "c"))
	},
	command.MotionRefused: func(w *world) command.Command {
		w.refound("a", "b")
		r := w.must("a", w.invite("c"))
		w.must("b", &command.Vote{Motion: r.Motion, Yes: false})
		return w.cmd("a", w.admission("c", "invitation of c", "c"))
	},
	command.BadSignature: func(w *world) command.Command {
		w.refound("a", "b")
		w.must("a", w.invite("c"))
		c := w.admission("c", "invitation of c", "c")
		c.ByKey[7]++
		return w.cmd("a", c)
	},
	command.KeyTaken: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("a", w.rekeying("a", "b", "", "a"))
	},
	command.OldKey: func(w *world) command.Command {
		w.refound("a", "b")
		c := w.cmd("b", w.rekeying("a", "a2", "", "a"))
		w.must("b", w.rekeying("a", "a3", "", "a"))
		return c
	},
	command.NoRecovery: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("b", &command.Rekey{Site: "a", Key: w.public("x"), ByRecovery: true})
	},
	command.RecoveryStands: func(w *world) command.Command {
		w.refound("a", "b")
		w.must("a", w.rekeying("a", "a", "paper", "a"))
		return w.cmd("b", w.rekeying("a", "a2", "thief's", "a"))
	},
	command.UnknownMotion: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("a", &command.Vote{Motion: 9, Yes: true})
	},
	command.MotionClosed: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("a", &command.Vote{Motion: 1, Yes: false})
	},
	command.TooManyMotions: func(w *world) command.Command {
		w.refound("a", "b")
		for i := range w.s.bounds.roster.ByInviter {
			w.must("a", w.invite(fmt.Sprint("x", i)))
		}
		return w.cmd("a", w.invite("y"))
	},
	command.LastElector: func(w *world) command.Command {
		w.refound("a")
		return w.cmd("a", &command.Motion{What: command.MotionBan, Site: "a"})
	},
	command.AlreadySo: func(w *world) command.Command {
		w.refound("a", "b")
		return w.cmd("a", &command.Motion{What: command.MotionElector, Site: "b"})
	},
}

// refusalChanges are changes that a refusal may have depended on.
var refusalChanges = []func(w *world){
	func(w *world) { w.do("a", &command.Addresses{HTTP: "a:1"}); w.do("a", &command.Addresses{HTTP: "a:2"}) },
	func(w *world) { w.do("b", w.offering("b", 8)) },
	func(w *world) { w.do("b", &command.Raise{Version: Version}) },
	func(w *world) {
		p := w.s.params
		p.RetainJobs, p.RetainMs = 0, 0
		w.do("b", &command.SetParams{Params: p})
		c := &command.Complete{}
		for _, a := range w.s.Assignments("b") {
			c.Attempts = append(c.Attempts, ended(a, command.Succeeded, 1))
		}
		w.do("b", c)
	},
	func(w *world) {
		w.at(w.base + 5000)
		w.do("b", &command.Usage{Batch: 1})
		w.do("a", &command.Usage{Batch: 1})
	},
	func(w *world) { w.seq["a"] += 5; w.do("a", &command.Addresses{HTTP: "a:3"}) },
	func(w *world) { w.do("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}}) },
	func(w *world) { w.term, w.base = w.term+1, 0; w.apply() },
	func(w *world) { w.apply(w.registration("late", nil, nil)) },
	func(w *world) { w.apply(w.cmd("b", &command.Leave{}), w.cmd("a", &command.Forget{Site: "b"})) },
	func(w *world) { w.apply(w.registration("a", nil, nil), w.registration("b", nil, nil)) },
	func(w *world) { w.apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Recover{Epoch: 1}}) },
	func(w *world) { w.apply(w.registration("a", nil, nil), w.registration("b", nil, nil)) },
}

// TestLateCopiesOfALostEpochAreRefused: the surviving copy did not know the last incarnation of a site, gave the
// same one to its next process, and took a late command of the former for one of the latter.
func TestLateCopiesOfALostEpochAreRefused(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	survivor, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	w.register("b") // only in entries that are lost
	late := w.cmd("b", &command.Submit{Jobs: []command.JobSpec{w.job("b", 1)}})
	w.s = survivor
	w.apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Recover{Epoch: 1}})
	if r := w.apply(late)[0]; r.Code != command.OldIncarnation {
		t.Fatalf("before b is back: %v", r.Code)
	}
	w.register("b")
	if r := w.apply(late)[0]; r.Code != command.OldIncarnation {
		t.Errorf("a command of incarnation %d gives %v, the site has %d", late.ID.Incarnation, r.Code, w.inc["b"])
	}
	if r := w.submit("b", w.job("b", 1)); r.Code != command.OK || w.s.Stats().Jobs != 1 {
		t.Errorf("%+v, %d jobs", r, w.s.Stats().Jobs)
	}
}

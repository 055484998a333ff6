package fsm

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// These parts of BenchmarkEntries grow with sites, requirements and declines, not with tasks.

// benchPriorities makes jobs that each have their own priority wait in one lane for an offer with room for all.
func benchPriorities(b *testing.B, size int) (*world, []command.Command) {
	w := newWorld(b, benchParams(10_000), "a", "b")
	for i := range int32(size * 5 / 2) {
		jobs := make([]command.JobSpec, command.MaxJobsPerSubmit)
		for k := range jobs {
			jobs[k] = w.job("a", 1)
			jobs[k].Priority = i*command.MaxJobsPerSubmit + int32(k)
		}
		w.submit("a", jobs...)
	}
	return w, []command.Command{w.cmd("b", w.offering("b", int64(size)*10_000))}
}

// benchManySites makes thousands of sites, which were lost in the entry before, register again.
func benchManySites(b *testing.B, size int) (*world, []command.Command) {
	w := newWorld(b, benchParams(10_000), "a")
	var lost, back []command.Command
	for i := range size * 400 {
		x := fmt.Sprintf("s%05d", i)
		w.register(x)
		w.must(x, w.offering(x, 1, 1, 1, 1))
		lost = append(lost, w.cmd("a", &command.SiteLost{Site: x, Incarnation: 1, Term: 1}))
	}
	w.apply(lost...)
	for i := range size * 400 {
		c := w.registration(fmt.Sprintf("s%05d", i), nil, nil)
		c.Body.(*command.Register).Boot = [16]byte{9, 9, byte(i), byte(i >> 8)}
		back = append(back, c)
	}
	return w, back
}

// benchSelectors offers machines, each with its own labels, to requirements by sixteen selectors; each machine
// satisfies all but one.
func benchSelectors(b *testing.B, size int) (*world, []command.Command) {
	w := newWorld(b, benchParams(10_000), "a", "b")
	o := w.selecting("a", 25*size, 100*size)
	return w, []command.Command{w.cmd("b", o)}
}

// benchDeclined makes the last of many sites decline jobs that all others have declined.
func benchDeclined(b *testing.B, size int) (*world, []command.Command) {
	const jobs = 4000
	w := newWorld(b, benchParams(10_000), "a", "z")
	w.submitMany("a", jobs)
	for i := range size * 10 {
		x := fmt.Sprintf("s%03d", i)
		w.register(x)
		w.must(x, w.offering(x, jobs))
		w.declineAll(x)
	}
	w.must("z", w.offering("z", jobs))
	d := &command.Decline{Reason: "busy"}
	for _, a := range w.s.Assignments("z") {
		d.Attempts = append(d.Attempts, a.AttemptRef)
	}
	return w, []command.Command{w.cmd("z", d)}
}

// benchStarving searches for reservations among many sites' requirements, none of which is within another.
func benchStarving(b *testing.B, size int) (*world, []command.Command) {
	const each = 100
	p := command.DefaultParams()
	p.FixedOrder = true
	w := newWorld(b, p, "big")
	w.must("big", &command.Offer{
		Version: 1,
		Machines: []command.Machine{{
			Name: "m", Resources: command.Resources{MilliCPU: 1000, MemMiB: 1000, GPU: 0},
			Whole: command.Resources{MilliCPU: command.MaxMilliCPU, MemMiB: command.MaxMemMiB, GPU: command.MaxGPU},
		}},
	})
	var cmds []command.Command
	for i := range size * 100 {
		x := fmt.Sprintf("s%04d", i)
		w.register(x)
		jobs := make([]command.JobSpec, each)
		for k := range jobs {
			jobs[k] = w.job(x, 1)
			u := int64(i*each + k + 1)
			jobs[k].Need = command.Resources{MilliCPU: 2000 + u, MemMiB: 2_000_000 - u}
		}
		cmds = append(cmds, w.cmd(x, &command.Submit{Jobs: jobs}))
	}
	w.apply(cmds...)
	w.at(w.base + 1500)
	return w, nil
}

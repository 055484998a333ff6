package plausible

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

const (
	// leastSlackMs is allowed of any run, where a federation has no leases.
	leastSlackMs = 2000
	// clockRate is by how much clocks' rates may differ.
	clockRate = 0.01
	// stallMs of log time behind this broker's clock are one stall; less is the log's tick.
	stallMs = 2000
	// maxStalls are remembered.
	maxStalls = 256
	// maxBegun attempts that run are known by their start; with one more all are forgotten.
	maxBegun = 16384
)

// beyond returns by how much, in ms, an attempt's reported run does not fit in the log's time: since its assignment,
// or, for its start, since the entry that said that it had begun. What began before this broker looked is not judged.
func (w *Watch) beyond(ev *fsm.Event, startedMs int64, started bool) int64 {
	if ev.AssignedMs < w.sinceMs {
		return 0
	}
	excess := ev.BeyondMs - w.clock.allowed(ev.AssignedMs, ev.Time)
	if started && ev.StartedMs >= 0 {
		excess = max(excess, startedMs-ev.StartedMs-w.clock.allowed(ev.StartedMs, startedMs))
	}
	return max(0, excess)
}

// begun has the log time of the entries that said that attempts had begun.
type begun map[command.AttemptRef]int64

func refOf(ev *fsm.Event) command.AttemptRef {
	return command.AttemptRef{Job: ev.Job, Task: ev.Task, Attempt: ev.Attempt, Token: ev.Token}
}

func (b begun) add(ev *fsm.Event) {
	if len(b) >= maxBegun { // many of them have ended unseen, or will not be checked
		clear(b)
	}
	if ev.Job.Site != ev.Site {
		b[refOf(ev)] = ev.Time
	}
}

func (b begun) take(ev *fsm.Event) (ms int64, ok bool) {
	ref := refOf(ev)
	ms, ok = b[ref]
	delete(b, ref)
	return ms, ok
}

// clock knows when log time stood still while this broker's clock went on: runs go on then, too.
type clock struct {
	start   time.Time
	slackMs int64
	behind  int64 // how far log time is behind, in ms, since the first sample, but for less than a stall
	stalls  []stall
	startMs int64
}

// stall is lost log time, noticed at a moment of the log's.
type stall struct{ atMs, lostMs int64 }

func (c *clock) sample(ms int64, now time.Time, leaseMs int64) {
	c.slackMs = max(leastSlackMs, 2*leaseMs)
	if c.start.IsZero() {
		c.start, c.startMs = now, ms
	}
	behind := now.Sub(c.start).Milliseconds() - (ms - c.startMs)
	switch lost := behind - c.behind; {
	case lost >= stallMs:
		c.behind = behind
		c.add(stall{ms, lost})
	case lost <= -stallMs: // it was this broker that had not heard
		c.behind = behind
	}
}

// add remembers a stall; one that goes on is one.
func (c *clock) add(s stall) {
	if n := len(c.stalls); n > 0 && c.stalls[n-1].atMs == s.atMs {
		c.stalls[n-1].lostMs += s.lostMs
		return
	}
	if len(c.stalls) == maxStalls {
		c.stalls = append(c.stalls[:0], c.stalls[1:]...)
	}
	c.stalls = append(c.stalls, s)
}

// allowed returns how much longer than from one log time to another an honest run may seem.
func (c *clock) allowed(fromMs, toMs int64) int64 {
	ms := c.slackMs + int64(float64(toMs-fromMs)*clockRate)
	for i := len(c.stalls) - 1; i >= 0 && c.stalls[i].atMs >= fromMs; i-- {
		ms += c.stalls[i].lostMs
	}
	return ms
}

package local

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox/outbound"
)

const (
	// hangBound is how long a stack may owe an answer until it counts as one that hangs.
	hangBound = 30 * time.Second
	// asksInBound are the questions to it in that time. They are counted, not the time: what was suspended, or stopped,
	// together with its supervisor owes one answer at most.
	asksInBound = 3
)

// pulse is what a supervisor knows of whether its stack hangs. The stack answers out of the loop that carries packets.
type pulse struct {
	bound time.Duration
	askAt int64 // CLOCK_BOOTTIME of the next question
	owed  int   // questions without an answer
	hangs bool  // for good: nobody trusts it again
}

func (p *pulse) pause() int64 { return int64(p.bound) / asksInBound }

// heardStack notes that it has just said something.
func (s *supervisor) heardStack(now int64) { s.pulse.owed, s.pulse.askAt = 0, now+s.pulse.pause() }

// askStack asks the stack when it is time, and reports whether it hangs.
func (s *supervisor) askStack(now int64) (hangs bool) {
	p := &s.pulse
	if s.network == 0 || now < p.askAt || p.hangs {
		return p.hangs
	}
	if p.owed >= asksInBound {
		p.hangs = true
		return true
	}
	p.owed, p.askAt = p.owed+1, now+p.pause()
	// One that is not taken is not answered, either.
	_ = unix.Send(s.network, []byte(outbound.Ask), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	return false
}

// stackAnswers waits until the stack has answered a question that is not older than the pause between two, or is lost.
// REQUIRES: no process of an attempt runs, whose end would be late.
func (s *supervisor) stackAnswers() bool {
	for !s.networkLost() {
		now := executor.Boottime()
		if s.network == 0 || s.pulse.owed == 0 && now < s.pulse.askAt {
			return true
		}
		if s.askStack(now) {
			return false
		}
		wait := time.Duration(s.pulse.askAt - now).Milliseconds()
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.network), Events: unix.POLLIN}}, int(wait)+1)
	}
	return false
}

// stackAnswersNow does so by a question of now.
func (s *supervisor) stackAnswersNow() bool {
	s.pulse.askAt = 0
	return s.stackAnswers()
}

package node

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// CountsOf returns counts of tasks by the names of their states, zero ones too; held of those that are queued in these
// terms are held by their owner's broker.
func CountsOf(c fsm.Counts, held uint32) map[string]uint32 {
	m := make(map[string]uint32, len(c))
	for state, n := range c {
		m[fsm.TaskState(state).String()] = n
	}
	m[fsm.Queued.String()] -= held
	m[Held] += held
	return m
}

// Ran returns the length of a run between two moments in ms, negative if one is missing.
func Ran(started, ended int64) time.Duration {
	if started < 0 || ended < 0 {
		return -1
	}
	return time.Duration(ended-started) * time.Millisecond
}

// Codes returns an ended task's exit code, or the signal that ended it.
func Codes(state fsm.TaskState, exit, signal int32) (exitCode, sig *int) {
	if state != fsm.TaskSucceeded && state != fsm.TaskFailed {
		return nil, nil
	}
	if signal != 0 {
		s := int(signal)
		return nil, &s
	}
	e := int(exit)
	return &e, nil
}

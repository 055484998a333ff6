package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// What costs how many steps. A step is about 20 ns on the machine of the figures in test/bench. All members must
// count alike, so only what follows from the entries is counted, never how a derived list happens to lie in
// memory.
const (
	stepLook    = 1  // examining a class, a machine, a lane or a job
	stepRule    = 1  // comparing a selector with a machine's labels
	stepDraw    = 16 // drawing a machine
	stepSort    = 8  // an attempt of a site, when a chore sorts it, and again when the chore treats it
	stepReset   = 4  // a machine, when a pass ends
	stepStop    = 16 // a live attempt
	stepBegin   = 8  // a job, as a policy of projected waits begins to count it
	stepProlong = 48 // an attempt that outlived its estimate
	stepEnd     = 48 // something that waits: one job, range or returned task
	stepAssign  = 64 // a task
	stepSettle  = 64 // an attempt

	stepRoster = 1 << 10 // a command of the roster: it looks at all invitations and motions
	stepVerify = 1 << 12 // a signature
	stepTally  = 1 << 8  // a motion that is counted again

	stepTurn = 4 // steps for a lane when a site's lanes are sorted

	needsAStep  = 4 // needs that are compared with a need in one step
	labelsAStep = 4 // labels of a machine that are walked in one step
)

// Steps is what one entry, or one command in it, took.
type Steps struct {
	Used  uint64 // of the last entry
	Bound uint64 // beyond it an entry defers work; what its own commands name is done in any case
	// Worst is the most that one command took since the state was created, by its kind; 0 stands for what
	// no command does: stop bounds that pass, deferred work, matching, reservations.
	Worst [command.LastKind + 1]uint64
}

// Steps returns how much work entries were.
func (s *views) Steps() Steps {
	return Steps{Used: s.steps.used, Bound: s.bounds.steps, Worst: s.steps.worst}
}

// counter counts the steps of one entry.
type counter struct {
	used  uint64
	limit uint64 // work that can be deferred ends here
	since uint64 // used when the current command began
	worst [command.LastKind + 1]uint64
}

// begin begins the count of an entry.
func (c *counter) begin(bound uint64) { c.used, c.since, c.limit = 0, 0, bound }

// ended attributes what was counted since the last call to a kind of command, or to none.
func (c *counter) ended(k command.Kind) {
	if n := c.used - c.since; n > c.worst[k] {
		c.worst[k] = n
	}
	c.since = c.used
}

// spare leaves at least a quarter of the bound for what can be deferred, however much the entry's commands took,
// so that deferred work always proceeds.
func (c *counter) spare(bound uint64) { c.limit = max(bound, c.used+bound/4) }

// spent reports whether the remaining work is for later entries.
func (c *counter) spent() bool { return c.used >= c.limit }

package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// What costs how many steps. A step is about 20 ns on the machine of the figures in
// test/bench; what matters is that all members count alike, so only what follows
// from the entries is counted: never how a derived list happens to lie in memory.
const (
	stepLook    = 1  // at a class, a machine, a lane or a job
	stepRule    = 1  // of a selector compared with a machine's labels
	stepDraw    = 16 // of a machine
	stepSort    = 8  // of what a site runs, when a chore puts it in order, and again when it comes to it
	stepReset   = 4  // of a machine, when a pass ends
	stepStop    = 16 // of a live attempt
	stepBegin   = 8  // of a job, in what a policy by projected waits counts
	stepProlong = 48 // of an attempt that outlived its estimate
	stepEnd     = 48 // of what waits: one job, range or returned task
	stepAssign  = 64 // of a task
	stepSettle  = 64 // of an attempt

	stepTurn = 4 // looks that a lane takes when a site's lanes are put in order

	needsAStep  = 4 // needs that a need is compared with in one step
	labelsAStep = 4 // labels of a machine that a walk along them passes in one step
)

// Steps are what one entry, or one command in it, took.
type Steps struct {
	Used  uint64 // of the last entry
	Bound uint64 // beyond it an entry puts work off; what its own commands name is done in any case
	// Worst of one command since the state was made, by its kind; 0 stands for what no
	// command does: stop bounds that pass, work that was put off, matching, reservations.
	Worst [command.LastKind + 1]uint64
}

// Steps tells how much work entries were.
func (s *views) Steps() Steps {
	return Steps{Used: s.steps.used, Bound: s.bounds.steps, Worst: s.steps.worst}
}

// counter counts the steps of one entry.
type counter struct {
	used  uint64
	limit uint64 // work that can be put off ends here
	since uint64 // used when the command under way began
	worst [command.LastKind + 1]uint64
}

// begin starts the count of an entry.
func (c *counter) begin(bound uint64) { c.used, c.since, c.limit = 0, 0, bound }

// ended notes what was counted since the last call as a command's, or as nobody's.
func (c *counter) ended(k command.Kind) {
	if n := c.used - c.since; n > c.worst[k] {
		c.worst[k] = n
	}
	c.since = c.used
}

// spare has at least a quarter of the bound left for what can be put off, however
// much the entry's commands took: so it never stands still.
func (c *counter) spare(bound uint64) { c.limit = max(bound, c.used+bound/4) }

// spent reports whether what is left is for later entries.
func (c *counter) spent() bool { return c.used >= c.limit }

package core

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// BroughtEvent says that the inputs are here of a job that is held for them (node.Request.Importing): Spec is its own
// with them. With Why they will not be: the job ends as cancelled, for that reason. Reply is called when that is
// durable; its error wraps node.ErrEnded if the job does not wait for inputs, any more.
type BroughtEvent struct {
	Num   uint64
	Spec  jobspec.Spec
	Why   string
	Reply func(error)
}

func (BroughtEvent) isEvent() {}

// errOtherSpec says that the spec with inputs is not that of the job which was held for them.
var errOtherSpec = errors.New("the job was submitted with another spec")

func (c *Core) handleBrought(ev BroughtEvent, fx *Effects) {
	err := c.bring(&ev, fx)
	if err != nil {
		err = fmt.Errorf("inputs of job %s: %w", command.JobID{Site: c.site, Num: ev.Num}, err)
	}
	fx.Replies = append(fx.Replies, func() { ev.Reply(err) })
}

// bring gives a held job its inputs, or ends it. What it waits for beside them it goes on to wait for.
func (c *Core) bring(ev *BroughtEvent, fx *Effects) error {
	j := c.after.Find(ev.Num)
	if j == nil || !j.Awaits() {
		return node.ErrEnded
	}
	if ev.Why != "" {
		c.endHeld(c.after.NotBrought(ev.Num, ev.Why, fx))
		return nil
	}
	js := ev.Spec.JobSpec(c.site, ev.Num, j.Spec.CreatedMs, c.sealer)
	if js.Count != j.Spec.Count || js.Need != j.Spec.Need || js.Gated != j.Spec.Gated {
		return errOtherSpec
	}
	c.endHeld(j)
	c.after.Brought(js, fx)
	c.quotas.Wait(j.User, claimOf(&js))
	return nil
}

// AwaitInputs returns the numbers of this site's jobs that are held for their inputs, ascending.
func (c *Core) AwaitInputs() []uint64 { return c.after.Awaiting() }

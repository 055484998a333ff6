package broker

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// proposer has commands ordered.
type proposer struct {
	*process
	order coord.Log
}

// proposeAll sends what has numbers: what only the leader says each by itself, all else together.
func (o *proposer) proposeAll(cmds []command.Command) {
	rest := cmds[:0:0]
	for _, cmd := range cmds {
		if cmd.Body.Kind().OfLeader() {
			o.goroutine(func() { o.proposeVerdict(cmd) })
			continue
		}
		rest = append(rest, cmd)
	}
	for len(rest) > 0 {
		n := callSize(rest)
		call := rest[:n:n]
		rest = rest[n:]
		o.goroutine(func() { o.propose(call) })
	}
}

const (
	// One call to the log holds at most so many commands and about so many bytes.
	maxCallCommands = core.MaxBehind + 1
	maxCallBytes    = 2 << 20
)

// callSize returns how many of the first commands make one call: at least one unit.
func callSize(cmds []command.Command) (n int) {
	bytes := 0
	for unit := range units(cmds) {
		if submit, ok := unit[0].Body.(*command.Submit); ok {
			for j := range submit.Jobs {
				bytes += submit.Jobs[j].SizeBound()
			}
		}
		if n > 0 && (n+len(unit) > maxCallCommands || bytes > maxCallBytes) {
			return n
		}
		n += len(unit)
	}
	return n
}

// units are the parts of a turn's commands that are each to be in one entry: a Submit with the cancellations behind it
// of jobs that it submits, or else they would begin first, and any other command by itself.
func units(cmds []command.Command) iter.Seq[[]command.Command] {
	return func(yield func([]command.Command) bool) {
		for len(cmds) > 0 {
			n := 1
			if submit, ok := cmds[0].Body.(*command.Submit); ok {
				for n < min(len(cmds), maxCallCommands) && cancels(cmds[n].Body, submit) {
					n++
				}
			}
			if !yield(cmds[:n:n]) {
				return
			}
			cmds = cmds[n:]
		}
	}
}

// cancels reports whether a command cancels a job that another one submits.
func cancels(body command.Body, submit *command.Submit) bool {
	c, ok := body.(*command.Cancel)
	return ok && slices.ContainsFunc(submit.Jobs, func(j command.JobSpec) bool { return j.Num == c.Job.Num })
}

// propose has commands ordered; the log retries under the same ids until they
// are executed, so an error comes only when the broker stops.
func (o *proposer) propose(cmds []command.Command) {
	results, err := o.order.Propose(o.ctx, cmds...)
	if err != nil && o.ctx.Err() == nil {
		o.fail(fmt.Errorf("propose %d commands: %w", len(cmds), err))
		return
	}
	o.post(core.ResultEvent{Cmds: cmds, Results: results, Err: err})
}

// proposeVerdict orders what only the leader says: the log tries a SiteLost once, in its own
// term, and the next leader refuses the others. If it did not come through, or nobody knows,
// the command's number is filled with one that does nothing: had it been executed, the
// repeat finds that out.
func (o *proposer) proposeVerdict(cmd command.Command) {
	results, err := o.order.Propose(o.ctx, cmd)
	if err != nil && o.ctx.Err() == nil {
		if !errors.Is(err, coord.ErrRefused) {
			o.log.Debug().Err(err).Uint8("kind", uint8(cmd.Body.Kind())).Msg("what only the leader says was not ordered")
		}
		cmd.Body = &command.Started{}
		if results, err = o.order.Propose(o.ctx, cmd); err != nil && o.ctx.Err() == nil {
			o.fail(fmt.Errorf("fill the number of what only the leader says: %w", err))
			return
		}
	}
	o.post(core.ResultEvent{Cmds: []command.Command{cmd}, Results: results, Err: err})
}

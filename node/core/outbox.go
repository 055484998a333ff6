package core

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// outbox numbers this incarnation's commands and keeps at most half a window
// of them under way, so that the state can always recognise a repeat (step 3).
type outbox struct {
	site        string
	incarnation uint64
	seq         uint64 // last number given
	// floor: results of all numbers ≤ floor are here.
	floor    uint64
	inflight map[uint64]waitingCommand
	waiting  []waitingCommand
}

type waitingCommand struct {
	body command.Body
	then func(command.Result, StateReader, *Effects)
}

// maxInflight is half the state's window.
const maxInflight = command.Window / 2

// add queues a command; then runs in the core when its result is known.
func (o *outbox) add(body command.Body, then func(command.Result, StateReader, *Effects)) {
	o.waiting = append(o.waiting, waitingCommand{body, then})
}

// flush gives numbers to what fits the window and hands it to the shell.
func (o *outbox) flush(fx *Effects) {
	n := 0
	for n < len(o.waiting) && o.seq-o.floor < maxInflight {
		w := o.waiting[n]
		o.seq++
		o.inflight[o.seq] = w
		fx.Propose = append(fx.Propose, command.Command{
			ID:   command.ID{Site: o.site, Incarnation: o.incarnation, Seq: o.seq},
			Ack:  o.floor,
			Body: w.body,
		})
		n++
	}
	o.waiting = slices.Delete(o.waiting, 0, n)
}

// handleResults settles commands. An error reaches it only when the broker stops. What
// came too late for its incarnation waits for the next one.
func (o *outbox) handleResults(ev ResultEvent, s StateReader, fx *Effects) {
	if ev.Err != nil {
		return
	}
	for i, cmd := range ev.Cmds {
		w, ok := o.inflight[cmd.ID.Seq]
		late := ev.Results[i].Code == command.OldIncarnation && !lastWord(cmd.Body)
		if !ok || cmd.ID.Incarnation != o.incarnation || late {
			continue
		}
		delete(o.inflight, cmd.ID.Seq)
		if w.then != nil {
			w.then(ev.Results[i], s, fx)
		}
	}
	for o.floor < o.seq {
		if _, open := o.inflight[o.floor+1]; open {
			break
		}
		o.floor++
	}
}

// lastWord reports whether a command is of no use to a later incarnation.
func lastWord(body command.Body) bool {
	switch body.(type) {
	case *command.Leave, *command.Forget, *command.SetParams:
		return true
	}
	return false
}

// beginIncarnation starts a new incarnation's numbers. What the last one left without a
// result is said again: every such command names jobs and attempts by ids that
// are executed once. Offers, bounds, usage and verdicts are made again by their owners.
func (o *outbox) beginIncarnation(incarnation uint64) {
	if incarnation == o.incarnation {
		return
	}
	var again []waitingCommand
	for seq := o.floor + 1; seq <= o.seq; seq++ {
		if w, ok := o.inflight[seq]; ok {
			again = append(again, w)
		}
	}
	o.waiting = append(again, o.waiting...)
	o.waiting = slices.DeleteFunc(o.waiting, func(w waitingCommand) bool {
		if lastWord(w.body) { // whoever waits for it must look
			w.then(command.Result{Code: command.OldIncarnation}, nil, nil)
			return true
		}
		switch w.body.(type) {
		case *command.Offer, *command.Usage, *command.SiteLost, *command.Suspect, *command.Bound:
			return true
		}
		return false
	})
	o.incarnation, o.seq, o.floor = incarnation, 0, 0
	clear(o.inflight)
}

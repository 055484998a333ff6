package turn

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Outbox numbers this incarnation's commands and keeps at most half a window
// of them under way, so that the state can always recognise a repeat (step 3).
type Outbox struct {
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
	// behind: it stands in the entry of the one before, so that nothing is assigned between the two.
	behind bool
}

// NewOutbox returns the outbox of a site that has no incarnation yet.
func NewOutbox(site string) Outbox {
	return Outbox{site: site, inflight: map[uint64]waitingCommand{}}
}

// Incarnation returns the last one that began, 0 = none yet.
func (o *Outbox) Incarnation() uint64 { return o.incarnation }

// Seq returns the number of the last command handed to the shell.
func (o *Outbox) Seq() uint64 { return o.seq }

// Len returns how many commands have no result yet.
func (o *Outbox) Len() int { return len(o.inflight) + len(o.waiting) }

// maxInflight is half the state's window.
const maxInflight = command.Window / 2

// MaxBehind is how many commands may stand behind another one: with it they fit half a window, and a call to the log.
const MaxBehind = 255

// Add queues a command; then runs in the core when its result is known.
func (o *Outbox) Add(body command.Body, then func(command.Result, StateReader, *Effects)) {
	o.waiting = append(o.waiting, waitingCommand{body: body, then: then})
}

// AddBehind is Add for the cancellation of a job that the command added before submits, or one behind that: all of them
// are in one entry. REQUIRES: at most MaxBehind of them.
func (o *Outbox) AddBehind(body *command.Cancel, then func(command.Result, StateReader, *Effects)) {
	o.waiting = append(o.waiting, waitingCommand{body, then, true})
}

// together returns how many of the commands that wait, from one on, are to be in one entry.
func (o *Outbox) together(from int) uint64 {
	n := 1
	for from+n < len(o.waiting) && o.waiting[from+n].behind {
		n++
	}
	return uint64(n)
}

// Flush gives numbers to what fits the window and hands it to the shell.
func (o *Outbox) Flush(fx *Effects) {
	n := 0
	for n < len(o.waiting) && (o.waiting[n].behind || o.seq-o.floor+o.together(n) <= maxInflight) {
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

// HandleResults takes the results of commands. What came too late for its incarnation waits
// for the next one.
func (o *Outbox) HandleResults(cmds []command.Command, results []command.Result, s StateReader, fx *Effects) {
	for i, cmd := range cmds {
		w, ok := o.inflight[cmd.ID.Seq]
		late := results[i].Code == command.OldIncarnation && !lastWord(cmd.Body)
		if !ok || cmd.ID.Incarnation != o.incarnation || late {
			continue
		}
		delete(o.inflight, cmd.ID.Seq)
		if w.then != nil {
			w.then(results[i], s, fx)
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

// BeginIncarnation starts a new incarnation's numbers. What the last one left without a
// result is said again: every such command names jobs and attempts by ids that
// are executed once. Offers, bounds, usage, verdicts and idle times are made again by their owners.
func (o *Outbox) BeginIncarnation(incarnation uint64) {
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
		case *command.Offer, *command.Usage, *command.SiteLost, *command.Suspect, *command.Bound,
			*command.Ahead:
			return true
		}
		return false
	})
	o.incarnation, o.seq, o.floor = incarnation, 0, 0
	clear(o.inflight)
}

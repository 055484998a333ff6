package node

import "github.com/cloudshare/cloudshare/fsm"

// outbox numbers this incarnation's commands and keeps at most half a window
// of them under way, so that the state can always recognise a repeat (step 3).
type outbox struct {
	site        string
	incarnation uint64
	seq         uint64 // last number given
	// done results up to floor: everything ≤ floor is finished.
	floor    uint64
	inflight map[uint64]func(fsm.Result, stateReader, *effects)
	waiting  []waitingCommand
}

type waitingCommand struct {
	body fsm.Body
	then func(fsm.Result, stateReader, *effects)
}

// maxInflight is half the state's window.
const maxInflight = fsm.Window / 2

// add queues a command; then runs in the core when its result is known.
func (o *outbox) add(body fsm.Body, then func(fsm.Result, stateReader, *effects)) {
	o.waiting = append(o.waiting, waitingCommand{body, then})
}

// flush gives numbers to what fits the window and hands it to the shell.
func (o *outbox) flush(fx *effects) {
	n := 0
	for n < len(o.waiting) && o.seq-o.floor < maxInflight {
		w := o.waiting[n]
		o.seq++
		o.inflight[o.seq] = w.then
		fx.propose = append(fx.propose, fsm.Command{
			ID:   fsm.CommandID{Site: o.site, Incarnation: o.incarnation, Seq: o.seq},
			Ack:  o.floor,
			Body: w.body,
		})
		n++
	}
	o.waiting = append(o.waiting[:0], o.waiting[n:]...)
}

// done settles commands. An error reaches it only when the broker stops.
func (o *outbox) done(ev resultEvent, s stateReader, fx *effects) {
	if ev.err != nil {
		return
	}
	for i, cmd := range ev.cmds {
		then, ok := o.inflight[cmd.ID.Seq]
		if !ok || cmd.ID.Incarnation != o.incarnation {
			continue
		}
		delete(o.inflight, cmd.ID.Seq)
		if then != nil {
			then(ev.results[i], s, fx)
		}
	}
	for o.floor < o.seq {
		if _, open := o.inflight[o.floor+1]; open {
			break
		}
		o.floor++
	}
}

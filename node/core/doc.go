// Package core is a broker's state and rules without any input or output (steps 2, 4, 6 and 7
// of a job's way): events go in, effects come out.
//
//	            ┌──────────────── Core ────────────────┐
//	[Event] ───▶│ Step    submit, cancel, capacity,     │
//	            │         ends, results, leases, ticks  │
//	            │ Settle  home starts, reconcile with   │──▶ [Effects]  starts, stops, fences,
//	[StateReader]│        the state, offers, commands   │               commands, writes, replies
//	            └──────────────────────────────────────┘
//
// What one concern alone keeps is a book in a package below: turn (what a turn is given and
// asks for), machines, attempts, homejobs, usage, publish, after, lend, bounds, reports, keys. A book
// knows no other one but those that it stands on; own reads some of them for lists and views.
// Here is what concerns several: which event goes where, where a job goes, what becomes of an
// assignment, and how a site starts, is expelled and returns.
//
// One goroutine owns a [Core]; it has no locks, starts no goroutines and opens nothing: the
// shell in node/broker carries the effects out, the simulator does it with another clock
// ([Driver]). The clock comes with [Core.SetClock], the journal of an earlier life with
// [Core.Recover] through a narrow reader. The package never imports the broker, a coordination
// backend, a handler, os, net or sync.
package core

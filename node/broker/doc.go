// Package broker is the shell around the core (node/core): the goroutines, the journal, the
// clock and the questions of one site's daemon.
//
//	api ──Submit, Cancel, Drain──▶ events ──▶ loop ──Step, Settle──▶ effects ─┬─▶ now: stops, fences, outcomes
//	handlers ──started, ended──▶      ▲                                       └─▶ journal, one sync ──▶ starts, commands, answers
//	replica ──the state changed──▶    │
//	api ──Jobs, Tasks, Why, Events──▶ └ reads of node/replica and of the core, on the loop's goroutine
//
// Beside the loop run the lease and its renewal, the leader's watch over the other sites'
// leases, and watches over disk and journal. It imports the contracts of coordination and of
// executors, never an implementation of them, and never api or cmd.
package broker

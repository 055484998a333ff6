// Package broker is the shell around the core (node/core): the goroutines, the journal, the
// clock and the questions of one site's daemon.
//
//	api ──Submit, Cancel, Drain──▶ events ──▶ loop ──Step, Settle──▶ effects ─┬─▶ now: stops, fences, outcomes
//	handlers ──started, ended──▶      ▲                                       └─▶ journal, one sync ──▶ starts, commands, answers
//	replica ──the state changed──▶    │
//	api ──Jobs, Tasks, Why, Events──▶ └ reads of node/replica and of the core, on the loop's goroutine
//
// [Broker] composes its parts, each with the state of one concern: process (goroutines, failure,
// the way to the core), committer (the journal's syncs), proposer (commands to the order), runner
// (handlers), registrar (registrations and epochs), leaderWatch, departure (drain and leave),
// journalWatch, crowding (other sites' tasks that fill the disk) and estimateKeeper. In packages
// below are query (what the API asks), leases (who is silent, as the leader sees it) and diskspace.
//
// Beside the loop run the lease and its renewal, the leader's watch over the other sites'
// leases, and watches over disk and journal. It imports the contracts of coordination and of
// executors, never an implementation of them, and never api or cmd.
package broker

// Package node is the broker: what one site runs.
//
// It carries steps 2, 4 and 6 of a job's way and holds the others together:
//
//		  client                      this site's broker                      all brokers
//		┌────────┐ 1 submit ┌──────────────────────────────────────┐ 3 order ┌───────────┐
//		│ api    │─────────▶│ 2 home or federation                 │────────▶│ coord     │
//		└────────┘          │   fits, nothing waits ──┐   else ────┼───┘     └─────┬─────┘
//		                    │                         ▼            │               ▼
//		┌────────┐ 4 offer  │ exposure            6 run            │ 5 decide ┌─────────┐
//		│executor│─────────▶│ capacity ─▶ offer   state ⇄ handlers │◀─────────│ fsm     │
//		│        │◀─────────│                     start, stop      │          │ + sched │
//		└────────┘          │ 7 complete: outcome, measured times ─┼─────────▶│         │
//		                    └──────────────────────────────────────┘          └─────────┘
//
//	 1. submit: package api hands over a validated [Spec]; it is synced in the
//	    [Journal] before anything is forked or sent (journal.go, submit.go).
//	 2. home or federation: [core.submit] starts it here at once, or publishes it.
//	 3. order: [outbox] gives commands their numbers; coord orders them.
//	 4. offer: [core.offer] exposes part of what the handlers have (exposure.go).
//	 5. decide: [Replica] applies entries to fsm.State, which matches.
//	 6. run: [core.reconcile] compares the state's assignments with the attempts
//	    here, and starts or stops the difference.
//	 7. complete: [core.hasEnded] reports outcome and measured times.
//	 8. lost: the lead's warden gives up sites whose lease ran out (watch.go,
//	    warden.go, lease.go); the state requeues their tasks (fsm). A site that
//	    returns, or restarts, settles or adopts every attempt (recover.go,
//	    expel.go) before it offers anything.
//
// [core] is pure: events go in, effects come out (core.go). One goroutine, the
// [Broker]'s loop, drives it. A second one syncs the journal behind it, and only
// then forks, publishes and answers; what needs no record (outcomes, stops,
// fences) goes out at once (loop.go). The package imports the contracts of
// coordination and executors, never an implementation of them, and never api or
// cmd.
package node

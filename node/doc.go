// Package node is the broker's vocabulary: what is asked of one site's broker, what it answers,
// and the errors and settings that its packages share. The broker itself is in the folders below.
//
// Steps 1 to 8 of a job's way, and the functions that carry them:
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
//	 1. submit: package api hands over a [Request] with a jobspec.Spec (jobspec.ParseSpec)
//	    to broker.Broker.Submit; it is synced in the record.Journal before anything is
//	    forked or sent.
//	 2. home or federation: the core's submit (core/submit.go) starts it here at once
//	    (core/homejobs, homejobs.Book.Run), or publishes it (core/publish, publish.Book.Publish).
//	    A job that waits for others is held before (core/after, after.Book).
//	 3. order: the core's outbox (core/turn, turn.Outbox) gives commands their numbers;
//	    coord orders them.
//	 4. offer: lend.Book.Offer (core/lend) exposes part of what the handlers have
//	    ([Exposure]).
//	 5. decide: replica.Replica.Apply applies entries to fsm.State, which matches.
//	 6. run: the core's reconcile (core/reconcile.go) compares the state's assignments with
//	    the attempts here, and starts or stops the difference.
//	 7. complete: the core's handleEnded (core/complete.go) reports outcome and measured times
//	    (core/reports, reports.Book.SendEnds).
//	 8. lost: the leader's broker gives up sites whose lease ran out (broker/watch.go,
//	    broker/leases, [Timing]); the state requeues their tasks (fsm). A site that
//	    returns, or restarts, settles or adopts every attempt (core.Core.Recover,
//	    core/expel.go) before it offers anything.
//
// The core is pure: core.Core.Step and core.Core.Settle turn events into core.Effects. One
// goroutine, the loop of broker.Broker, drives it. A second one syncs the journal behind it,
// and only then forks, publishes and answers; what needs no record (outcomes, stops, fences)
// goes out at once (broker/loop.go, broker/commit.go). DESIGN.md has the map of the packages
// and the arrows between them.
//
// This package imports jobspec and the contracts of coordination and executors, and none of
// the packages that use it.
package node

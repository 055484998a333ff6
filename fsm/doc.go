// Package fsm is the replicated state machine: steps 5, 7 and 8 of a job's way.
//
//	command.Batch ──State.Apply──▶ command.Result of each command
//	                 │ 1 log time, departures    4 work that was deferred
//	                 │ 2 bounds that passed      5 one match: assignments
//	                 │ 3 the commands in order   6 reservations; old jobs leave
//	                 └──▶ views (Jobs, Tasks, Assignments, Sites, Why …), events, Snapshot
//
// Equal entries give equal states at every member ([State.Hash]). It imports command, sched
// and the standard library, and never sees a clock, randomness, a network, a disk, map order
// or floats. DESIGN.md has the decisions.
package fsm

// Package command holds the commands of the replicated state machine: those of steps 3 and 5 of a job's
// way, their bounds, their results and their encoding.
//
//	Submit, Offer, Complete …  ──Command.Validate, Append──▶ bytes ─┐ AppendBatch
//	Batch{Term, Elapsed, Commands} ◀──DecodeBatch── one entry ◀─────┘ coord orders it
//	                     └──fsm.State.Apply──▶ Result{Code, …}
//
// It also has the types that commands consist of: ids ([JobID]), labels and selectors of machines
// ([Labels], [Selector]), the requirement of a task ([Shape]), the federation's parameters ([Params]).
// Nothing here needs a state, so code that proposes, orders or stores commands works without one.
//
// It imports sched, for the policies' names and the ledger's bounds, the standard library and
// its wire encoding, and sees no clock, randomness, network, disk, map order or floats.
package command

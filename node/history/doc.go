// Package history keeps what has led to a broker's copy of the state, so that anybody can go through it again: the
// entries as they were ordered (step 3 of a job's way), the state with which they begin, and what members have signed
// of both.
//
//	replica.Replica ──entries, states──▶ Keeper ──▶ segments in data_dir/history ──▶ Export: one file for a third party
//	compare.Checker ──statements───────▶                     │
//	                                                         └──▶ package replay: the same state machine, once more
//
// A segment and an exported file have one form (record.go). Nothing of a broker rests on what is kept here: what cannot
// be written is not kept, and says so. The package must never import the core, the broker or a backend.
package history

// Package replay goes through a kept history once more: it checks who has signed each bundle, has the state machine
// execute each entry (fsm, the very code that brokers run), and compares what comes out with what members have signed
// while it happened. Steps 3 and 5 of a job's way, afterwards and by anybody: it needs the file and nothing else.
//
//	collect (statements.go) ─▶ for each window of entries: decode and verify ahead, on all processors (window.go)
//	                                                    └▶ apply, in order; compare (verify.go, compare.go) ─▶ Report
//
// What it reads is foreign: it bounds what it keeps, and finds faults instead of failing. It must never import a broker
// or a backend.
package replay

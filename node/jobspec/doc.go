// Package jobspec reads, checks and writes a user's job.
//
// It is the first half of step 1 of a job's way: text comes in, a valid [Spec] goes on, and
// what the replicated state and the handlers see of it goes out again:
//
//	JSON text ──ParseSpec──▶ Spec ──Spec.JobSpec──▶ command.JobSpec ──SpecOf──▶ Spec
//	                                                       └ payload: what the order never reads
//
// A parse is strict: what is unknown, repeated or out of bounds is an error that names the
// field. The package also knows the indices by which users number tasks ([Indices]), the
// quantities of memory, and how words are written for a shell. It is a leaf: it imports the
// state machine's commands and the executors' contract, and nothing of the broker.
package jobspec

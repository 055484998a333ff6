// Package jobspec reads, checks and writes a user's job.
//
// It is the first half of step 1 of a job's way. It turns JSON text into a valid [Spec], the Spec into
// what the replicated state and the handlers see of it, and that back into a Spec:
//
//	JSON text ──ParseSpec──▶ Spec ──Spec.JobSpec──▶ command.JobSpec ──SpecOf──▶ Spec
//	                                    Sealer ──▶         └ payload: what the state machine never reads
//	                                               (labels, image: everybody · name, command, environment,
//	                                                inputs, outputs: sealed)
//
// Parsing is strict: a field that is unknown, repeated or out of bounds is an error that names the
// field. The package also has the indices by which users number tasks ([Indices]), quantities of
// memory, and quoting for a shell. It is a leaf: it imports the state machine's commands, the executors'
// contract and the words for files, and nothing of the broker.
package jobspec

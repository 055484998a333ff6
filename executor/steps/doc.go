// Package steps runs several commands one after the other in the container of one attempt, with files in the places of
// their input and output, and brings what they leave at absolute paths into the work folder, where a [Collector] finds
// it: step 6 of a job's way. What to run, and what became of it, package plan words; a handler whose tasks have an
// image begins this same program in the place of [plan.Program]. It knows no handler.
//
// [Collector]: the contract of package executor.
package steps

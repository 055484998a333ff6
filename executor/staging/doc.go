// Package staging puts files into a task's work folder before it begins, and takes its
// outputs out after it has ended: step 6 of a job's way. Nothing that a task can leave in a
// folder leads it out of there. It imports the contract and what owns attempts, never a
// handler.
package staging

// Package outputs keeps what ended attempts have written: small outputs together in
// segment files, large ones in files of their own. It is bounded by bytes and by age,
// and removes the oldest first. Step 6 of a job's way, after the end.
//
// The package imports the contract (executor) and nothing of handlers or the broker.
package outputs

// Package sandbox contains the processes of strangers: namespaces, a root of their own
// and a filter of system calls, made without root and without a setuid helper. Step 6
// of a job's way: executor/local starts a supervisor by [Plan.Attributes], and that
// process calls [Plan.Enter] before it serves.
//
// What a task in it sees and can do, and why, is in DESIGN.md beside this file. The
// package knows Linux only, and nothing of handlers or brokers.
package sandbox

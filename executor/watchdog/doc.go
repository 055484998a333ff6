// Package watchdog is what a process that owns one attempt is made of: when to
// end it (a pure function of the clock), the fence that it shares with its
// handler, the task's environment, the bounds of its output, and how its end is
// told. Step 6 of a job's way: executor/local's supervisors and the first process
// of each of executor/container's containers are such processes.
//
// It imports the contract (executor) only.
package watchdog

// Package watchdog is what a process that owns one attempt is made of: the loop that
// starts the task's process, ends it in time, reaps all that it leaves and explains
// its end ([Watch]); when to end it (a pure function of the clock, plan.go); the task's
// environment and the bounds of its output. Step 6 of a job's way: executor/local's
// supervisors and the first processes of executor/container's containers and of
// executor/kube's pods are such processes.
//
// They differ by two seams. A [Fence] says until when an attempt may live: the [Page]
// that its handler has mapped, too, or what the handler has answered last. A [Link]
// brings a handler's orders and takes the news to it: by a socket and signals, by a
// fifo and a file, or by questions and a container's last words.
//
// It imports the contract (executor) only.
package watchdog

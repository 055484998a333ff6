// Package box is what runs inside each container of a task: its first process,
// this very program mounted into it (see [Init]), and what that process and the
// handler outside tell each other through the attempt's files. Step 6 of a job's
// way; it imports the contract and what owns attempts, never the handler.
package box

// Package attempts is what every handler keeps of its attempts: which it has and
// what the contract asks of each, the room that they take on the machine, the
// events for the broker, what may be read of their output, and how long they are
// kept. Step 6 of a job's way; it imports the contract and the watchdogs' fence.
package attempts

// Package books is what a handler keeps of its attempts beside them: the room
// that they take on the machine, the events for the broker, and who reads
// output that still grows. Step 6 of a job's way; it imports the contract only.
package books

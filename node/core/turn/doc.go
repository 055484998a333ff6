// Package turn has what a turn of the core is given, and what it asks for: the state as the
// core reads it, the clock, the effects that the shell carries out, and the outbox of
// commands. The books of the core below node/core share it; it knows none of them.
package turn

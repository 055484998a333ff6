package command

import "slices"

// Result answers a command; it is what a repeat of the command gives again.
type Result struct {
	Code  Code
	Index uint64 // entry number that executed it
	// Jobs holds a Submit's code per job; nil when all are OK.
	Jobs []Code
	// Incarnation, NextJob and NextUsage answer a Register.
	Incarnation, NextJob, NextUsage uint64
}

// Clone returns a copy that shares nothing with r.
func (r Result) Clone() Result {
	r.Jobs = slices.Clone(r.Jobs)
	return r
}

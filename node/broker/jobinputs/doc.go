// Package jobinputs looks after the files that this site's jobs bring along (steps 1 and 6 of a job's way): it finds
// what a spec names in the store before the job is taken, keeps it there as long as the job has not ended, and knows
// which blob may be given to whoever runs the job. It imports the store, and nothing of the broker.
//
//	call := book.Begin()                        // for the requests of one call: a manifest is read once
//	found, err := call.Resolve(user, &spec)     // fills sizes in; an error names the input
//	book.Keep(num, found)                       // pins, from when the job has its number
//	user, ok := book.Names(num, hash)           // may a site that runs the job have it?
//	book.Release(num)                           // when the job has ended
package jobinputs

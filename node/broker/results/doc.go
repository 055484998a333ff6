// Package results is the durable book of what tasks of this site's jobs have left (step 7 of a job's way): for each
// task the manifest of the attempt that counts. Its blobs are in the store, in the part of the job's user, pinned as
// long as the book names them. It imports store and journal, and nothing of the broker.
//
//	book, err := results.Open(...)       // reads the journal
//	err = book.Load()                    // reads the manifests, and pins what they name; without it nothing may go
//	err = book.Keep(num, result)         // durable when it returns
//	list, next := book.List(num, from, most)
//	book.End(num); book.Drop(num)        // the job has ended; its results' time is over
package results

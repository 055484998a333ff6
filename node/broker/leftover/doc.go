// Package leftover brings home what tasks of this site's jobs left at other sites that failed or were cancelled there
// (behind step 7 of a job's way). Nothing in the state waits for it: a failure is one at once, whatever becomes of its
// files. It follows the state and the feed, as homelogs does, and fetches as delivery does, by a loop of that package.
//
//	events, and the state at a start ──▶ list ──▶ delivery.Loop, at its idle pace ──▶ results.Book
//	                                       │                                      └──▶ Release to the site that kept it
//	                                       └── Why: on its way, or given up
//
// It imports neither core nor broker.
package leftover

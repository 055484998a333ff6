// Package delivery fetches what tasks of this site's jobs have left at other sites, and says what became of it (step 7
// of a job's way). It follows the state: whatever is delivering by that is fetched until it is here, is lost, or is
// wanted no more, whatever was missed and whichever life of the broker began it.
//
//	State.Since ──▶ Loop ──▶ a few workers for each site ──▶ manifests, many in a request
//	                                                     ──▶ read strictly, against what was said and the job wants
//	                                                     ──▶ their blobs that are not here, into their user's part
//	                                                     ──▶ results.Book, durably ──▶ Say: ok, lost or failed
//
// The design is in ../jobinputs/DESIGN.md. The package imports the store, the book of results and the words of
// transfers, and neither core nor broker.
package delivery

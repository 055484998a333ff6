// Package homelogs brings home what a site's own tasks have written at other sites, behind step 8 of a job's way: once
// an attempt has ended there, its stdout and stderr are asked for (node/coord/asklogs), many in a question, and put
// into the site's store of outputs, where they stay as long as those of its own machines. So they can be read when the
// site that has run them is gone.
//
//	events of the feed ──▶ queue of a site ─┐
//	                                        ├─▶ its worker ── question ──▶ other broker
//	state, once a start ─▶ sweep of a site ─┘       └──▶ store (one sync a batch)
//
// The state of the federation says what has ended where; a queue is only its news. Whatever is missed by it, since the
// broker was away, fell behind or had no room, the sweep finds. DESIGN.md has the limits. The package imports neither
// the broker nor the store.
package homelogs

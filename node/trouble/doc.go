// Package trouble remembers what went wrong at a site's handlers: which machines could not
// start tasks and rest therefore ([Troubles]), and why tasks were handed back or lost, counted
// by handler ([Tallies]).
//
// The core writes and the broker's queries read concurrently, so this is where the locks are that
// the core has not. Time is handed in. It never imports the core or the broker.
package trouble

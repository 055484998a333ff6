// Package compare has the members of an ordered log compare their histories and
// states while they run: it watches over step 3 of a job's way.
//
// All members note the head of a hash chain over the entries, and their state's hash,
// at the same entries (coord.Checkpointed), and sign that (statement.go). Now and then
// each asks others, over connections that it dialed itself (run.go, round.go), and judges
// (judge.go): one that differs from a majority of the voters keeps its state and
// another one's, and stops (stop.go); where there is no majority it says that it is
// unsure. heard.go proves that a site has signed two histories; evidence.go is what
// others can check, keep.go keeps it. serve.go answers the others. The package imports
// coord, relay and identity, and neither a backend nor the broker.
package compare

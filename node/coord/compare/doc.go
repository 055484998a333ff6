// Package compare has the members of an ordered log compare their states while
// they run: it watches over step 3 of a job's way.
//
// All members hash their state at the same entries (coord.Checkpointed). Now and
// then each asks others for their hashes, over connections that it dialed itself
// (round.go), and judges (judge.go): one that differs from a majority of the voters
// keeps its state and another one's, and stops (stop.go). Whatever else differs is
// only told. serve.go answers the others. The package imports coord and relay,
// and neither a backend nor the broker.
package compare

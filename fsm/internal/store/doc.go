// Package store holds the lists of the state machine's state: records by number, which a snapshot shares
// until they change ([Pages]), sorted lists in pieces ([Sorted]), sets of job numbers ([NumRange]), sums
// of weights ([Fenwick]), heaps ([Heap]) and stacks of numbers ([Stack]). It serves step 5 of a job's way
// and knows nothing of jobs.
//
//	Pages:   key ─▶ page of 64 records ─▶ record      a copied table is a snapshot
//	Sorted:  [≤512] [≤512] … [last]                   a change moves one piece only
//
// The cost of one change is bounded in each of them, however much it holds: one entry of the log may make
// ten thousand changes. None sees a clock, randomness or the order of a map.
package store

// Package store keeps raft's entries, votes and terms in a journal: recent entries in
// memory, too, the writes under way and their latency for those who watch the disk,
// and a failed disk as the member's end instead of raft's panic. Step 3 of a job's way.
package store

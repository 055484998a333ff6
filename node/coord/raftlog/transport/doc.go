// Package transport carries raft's requests between members: it sends them by raft's
// own transport, receives and screens them by itself, keeps each follower's progress,
// and confirms that this member leads. Step 3 of a job's way. It knows addresses,
// connections and raft, and neither the log's owner nor what is in an entry.
//
// A request comes like this: Serve reads it within its time and memory (receive.go,
// requests.go), refuses what no member sends (screen.go) and terms that no election
// led to (terms.go), and hands it to raft. What is sent is counted and measured
// (transport.go). Entries for who is far (way.go) go by a pipe, which does not wait for
// answers (pipe.go), and notices tell of commits (notice.go); Confirm asks the voters
// (confirm.go).
package transport

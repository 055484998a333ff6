package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// A follower learns that an entry is committed from the next append request. When none
// follows, raft sends one only after CommitTimeout; lowering that to a few milliseconds
// costs hundreds of requests a second at rest. Instead the leader sends a notice at once,
// an empty append request: behind the entry, whether or not this follower has
// acknowledged it, and whether or not other entries are in flight. A notice says only
// what is true forever (the leader of this term had this entry, of this term, committed),
// so it is safe however late it arrives, and a follower without the entry refuses it.

const (
	// noticePace is how long a notice waits for the answer to the one before. On a LAN
	// that has come by then, and a notice tells of all commits since; over a WAN it is
	// little beside a round trip.
	noticePace = 2 * time.Millisecond
	// maxNotices bounds those to one follower that are not answered.
	maxNotices = 8
)

// commitNews is what one follower has been told of commits in this term.
type commitNews struct {
	sent    uint64 // newest entry in a request that was sent
	told    uint64 // newest commit index that it has confirmed
	telling uint64 // newest one that is in a request under way; Invariant: not below told
	waiting int    // notices that are not answered
	running bool   // sendNotices is
}

func (n *commitNews) beginTerm() { n.sent, n.told, n.telling = 0, 0, 0 }

// sending notes a request that is about to be sent.
func (n *commitNews) sending(args *raft.AppendEntriesRequest) {
	n.sent = max(n.sent, lastOf(args))
	n.telling = max(n.telling, commitIn(args))
}

// heard notes the commit index in a request that the follower has accepted.
func (n *commitNews) heard(commit uint64) {
	n.told = max(n.told, commit)
	n.telling = max(n.telling, n.told)
}

// lost notes that a request was refused or not answered: what the follower stores beyond
// match is not known.
func (n *commitNews) lost(match uint64) { n.sent, n.telling = match, n.told }

// lastOf returns the newest entry that a follower has that accepts a request.
func lastOf(args *raft.AppendEntriesRequest) uint64 {
	if n := len(args.Entries); n > 0 {
		return args.Entries[n-1].Index
	}
	return args.PrevLogEntry
}

// commitIn returns the newest entry that a follower commits that accepts a request.
func commitIn(args *raft.AppendEntriesRequest) uint64 {
	return min(args.LeaderCommitIndex, lastOf(args))
}

// Committed is told each entry that this member applies as the leader of its term.
func (t *Transport) Committed(l *raft.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beginTerm(l.Term)
	if l.Term != t.term {
		return
	}
	t.committed = max(t.committed, l.Index)
	for id, p := range t.peers {
		t.tellCommit(id, p)
	}
}

// tellCommit has a follower told of the newest commit, if it was not.
//
// REQUIRES: t.mu held.
func (t *Transport) tellCommit(id raft.ServerID, p *progress) {
	if p.commits.running || !t.owesNotice(p) {
		return
	}
	p.commits.running = true
	t.wg.Go(func() { t.sendNotices(id, p) })
}

// owesNotice reports whether a follower may be told of a commit that no request tells it.
//
// REQUIRES: t.mu held.
func (t *Transport) owesNotice(p *progress) bool {
	n := &p.commits
	return !t.closed && !t.muted && n.telling < t.committed && t.committed <= max(n.sent, p.match) &&
		n.waiting < maxNotices && p.addr != ""
}

// sendNotices sends notices until none is owed or one fails: what comes of the follower
// next starts it again.
func (t *Transport) sendNotices(id raft.ServerID, p *progress) {
	for t.sendNotice(id, p) {
	}
}

// sendNotice sends a notice if one is owed, and waits for its answer or a moment; it reports
// whether there is reason to go on.
func (t *Transport) sendNotice(id raft.ServerID, p *progress) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.commits.running = t.owesNotice(p); !p.commits.running {
		return false
	}
	req := &raft.AppendEntriesRequest{
		RPCHeader: t.self, Term: t.term,
		PrevLogEntry: t.committed, PrevLogTerm: t.term, LeaderCommitIndex: t.committed,
	}
	p.commits.sending(req)
	p.commits.waiting++
	target, answer := p.addr, make(chan bool, 1)
	t.wg.Go(func() { answer <- t.tell(id, target, p, req) })
	t.mu.Unlock()
	accepted := true
	select {
	case accepted = <-answer:
	case <-time.After(noticePace):
	}
	t.mu.Lock()
	p.commits.running = accepted
	return accepted
}

// tell sends a notice and notes what becomes of it.
func (t *Transport) tell(id raft.ServerID, target raft.ServerAddress, p *progress, req *raft.AppendEntriesRequest,
) bool {
	var resp raft.AppendEntriesResponse
	err := t.carry(id, target, req, &resp)
	t.mu.Lock()
	defer t.mu.Unlock()
	p.commits.waiting--
	accepted := err == nil && resp.Success
	switch {
	case req.Term != t.term:
	case accepted:
		p.commits.heard(req.LeaderCommitIndex)
		t.tellCommit(id, p)
	default:
		p.commits.lost(p.match)
	}
	return accepted
}

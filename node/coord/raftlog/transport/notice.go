package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// A follower learns that an entry is committed from the next append request. When none
// follows, raft sends one only after CommitTimeout; lowering that to a few milliseconds
// costs hundreds of requests a second at rest. Instead the leader sends a notice at once,
// an empty append request, unless entries follow, whose request tells the same. By a pipe
// it goes behind its entry, whether or not this follower has acknowledged that. Without a
// pipe it could arrive before the entry: there it waits for the acknowledgement, and one
// is under way at a time. A notice says only what is true forever (the leader of this term
// had this entry, of this term, committed), so it is safe however late it arrives, and a
// follower without the entry refuses it.

const (
	// noticePace is how long a notice on a pipe waits for the answer to the one before,
	// so that one tells of several commits: it is little beside a round trip.
	noticePace = 2 * time.Millisecond
	// maxNotices bounds those on a pipe that are not answered.
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
	last := t.lastIndex()
	for id, p := range t.peers {
		if p.pipe != nil || p.match >= last { // else it answers soon, and entries may follow
			t.tellCommit(id, p)
		}
	}
}

// lastIndex returns the newest entry of this member.
func (t *Transport) lastIndex() uint64 {
	if r := t.raft.Load(); r != nil {
		return (*r).LastIndex()
	}
	return 0
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

// owesNotice reports whether a follower may be told of a commit that no request tells it, none that is about to be sent
// either.
//
// REQUIRES: t.mu held.
func (t *Transport) owesNotice(p *progress) bool {
	n, there, most := &p.commits, p.match, 1
	if p.pipe != nil {
		there, most = max(n.sent, p.match), maxNotices
	}
	return !t.closed && !t.muted && n.telling < t.committed && t.committed <= there && n.waiting < most &&
		p.addr != "" && t.lastIndex() <= n.sent
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
	target, by := p.addr, p.pipe
	t.mu.Unlock()
	accepted := t.paced(by, func() bool { return t.tell(id, target, by, p, req) })
	t.mu.Lock()
	p.commits.running = accepted
	return accepted
}

// paced has a notice sent and waits for its answer: by a pipe for a moment only, after which it is taken for accepted.
func (t *Transport) paced(by *pipe, send func() bool) (accepted bool) {
	if by == nil {
		return send()
	}
	answer := make(chan bool, 1)
	t.wg.Go(func() { answer <- send() })
	moment := time.NewTimer(noticePace)
	defer moment.Stop()
	select {
	case accepted = <-answer:
		return accepted
	case <-moment.C:
		return true
	}
}

// tell sends a notice by a pipe, or without one, and notes what becomes of it.
func (t *Transport) tell(id raft.ServerID, target raft.ServerAddress, by *pipe, p *progress,
	req *raft.AppendEntriesRequest,
) bool {
	var resp raft.AppendEntriesResponse
	var err error
	if by != nil {
		err = by.notice(req, &resp)
	} else {
		err = t.NetworkTransport.AppendEntries(id, target, req, &resp)
	}
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

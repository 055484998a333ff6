package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// raft sends each member a heartbeat every tenth of the heartbeat timeout, and an append request without entries as
// often as CommitTimeout says: 30 a second on the LAN profile, for each of hundreds of members. Voters need them: they
// would elect another leader. The others elect nobody; they hear of the leader by each entry, and one is ordered every
// second even at rest. So what tells them nothing new is not sent to them, unless nothing was for a while, and raft is
// told the answer that the member has given before.

// Quiet is for how long a member that does not vote is not sent what tells it nothing new, once it has answered. Its
// own timeouts must be longer.
type Quiet struct {
	For time.Duration
	// Silence is termLeader's at a member that does not vote: it hears of its leader less often.
	Silence time.Duration
}

// spared answers a request in a member's place if that would say nothing but what it has said already: a heartbeat, or
// the place of an entry that it has stored in this term, as an answer told since.
func (t *Transport) spared(id raft.ServerID, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) bool {
	if len(args.Entries) > 0 || t.quiet.For == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[id]
	news := p == nil || args.Term != t.term || p.said != t.term || args.PrevLogEntry > p.match ||
		p.commits.told < min(args.LeaderCommitIndex, args.PrevLogEntry)
	now := time.Now()
	if news || t.muted || t.closed || now.Sub(p.at) >= t.quiet.For || t.votes(id) {
		return false
	}
	if isHeartbeat(args) && p.way.isDue(now, wayQuiets*t.quiet.For) { // nothing else measures the way; see way.go
		return false
	}
	// No header: raft decodes the next answer into this one, over the bytes that the request's has.
	*resp = raft.AppendEntriesResponse{Term: args.Term, LastLog: p.match, Success: true}
	return true
}

// selfVotes reports whether this member does.
func (t *Transport) selfVotes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.votes(raft.ServerID(t.self.ID))
}

// votes reports whether a member votes by the newest configuration that raft knows, committed or not. raft never
// changes one, but makes another, so that it is looked through once.
//
// REQUIRES: t.mu held.
func (t *Transport) votes(id raft.ServerID) bool {
	r := t.raft.Load()
	if r == nil {
		return true
	}
	servers := (*r).GetConfiguration().Configuration().Servers
	if len(servers) == 0 {
		return true
	}
	if len(servers) != len(t.servers) || &servers[0] != &t.servers[0] {
		t.servers, t.voters = servers, map[raft.ServerID]bool{}
		for _, s := range servers {
			if s.Suffrage == raft.Voter {
				t.voters[s.ID] = true
			}
		}
	}
	return t.voters[id]
}

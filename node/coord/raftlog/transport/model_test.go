package transport

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// modelFollower is a follower in a few lines: a log that begins behind a snapshot, and refuses what does not fit.
type modelFollower struct {
	mu     sync.Mutex
	base   uint64   // newest entry in the snapshot
	terms  []uint64 // of the entries behind it
	commit uint64
	bad    bool // entries cannot be stored
	most   uint64
	wrong  []string
}

// last returns the newest entry.
func (f *modelFollower) last() uint64 { return f.base + uint64(len(f.terms)) }

// answer does what a request says, if it fits; lead is the leader's log.
func (f *modelFollower) answer(q *raft.AppendEntriesRequest, lead *modelLog) *raft.AppendEntriesResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	resp := &raft.AppendEntriesResponse{Term: q.Term, LastLog: f.last()}
	if q.PrevLogEntry > f.last() || q.PrevLogEntry < f.base ||
		q.PrevLogEntry > f.base && f.terms[q.PrevLogEntry-f.base-1] != q.PrevLogTerm {
		return resp
	}
	for _, e := range q.Entries {
		at := e.Index - f.base - 1
		if at < uint64(len(f.terms)) && f.terms[at] == e.Term {
			continue
		}
		if f.bad {
			return resp
		}
		if e.Index <= f.commit {
			f.wrong = append(f.wrong, fmt.Sprintf("entry %d is replaced, %d is committed", e.Index, f.commit))
		}
		f.terms = append(f.terms[:at], e.Term)
	}
	f.most = max(f.most, lastOf(q))
	if c := min(q.LeaderCommitIndex, f.last()); c > f.commit {
		f.commit = c
		if !lead.has(f.base, f.terms[:c-f.base]) || c > lead.committed() {
			f.wrong = append(f.wrong, fmt.Sprintf("entry %d is committed, and is not the leader's, or not there", c))
		}
	}
	resp.Success, resp.LastLog = true, f.last()
	return resp
}

// install replaces all by a snapshot.
func (f *modelFollower) install(base uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if base > f.commit {
		f.base, f.terms, f.commit = base, nil, base
		f.most = max(f.most, base)
	}
}

func (f *modelFollower) serve(tr *Transport, lead *modelLog, wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			select {
			case rpc := <-tr.Consumer():
				q, _ := rpc.Command.(*raft.AppendEntriesRequest)
				rpc.Respond(f.answer(q, lead), nil)
			case <-tr.shut:
				return
			}
		}
	})
}

// modelLog is the leader's log.
type modelLog struct {
	mu     sync.Mutex
	terms  []uint64
	commit uint64
	gone   uint64 // entries that only the snapshot has
	more   chan struct{}
}

func (l *modelLog) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *modelLog) committed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commit
}

// has reports whether terms are those of the entries behind base.
func (l *modelLog) has(base uint64, terms []uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return base+uint64(len(terms)) <= uint64(len(l.terms)) && slices.Equal(l.terms[base:base+uint64(len(terms))], terms)
}

// request returns the one that begins with an entry, as raft does; nil: only the snapshot has that.
func (l *modelLog) request(tr *Transport, next uint64) *raft.AppendEntriesRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next <= l.gone {
		return nil
	}
	q := &raft.AppendEntriesRequest{
		RPCHeader: tr.self, Term: leaderTerm, PrevLogEntry: next - 1, LeaderCommitIndex: l.commit,
	}
	if next > 1 {
		q.PrevLogTerm = l.terms[next-2]
	}
	for i := next; i <= uint64(len(l.terms)) && len(q.Entries) < 8; i++ {
		q.Entries = append(q.Entries, &raft.Log{Index: i, Term: l.terms[i-1]})
	}
	return q
}

// modelStep is what happens next, for n of its units.
type modelStep struct {
	what string
	n    int
}

var modelSteps = []string{
	"append", "append", "append", "commit", "commit", "bad disk", "cut", "compact", "delay", "restart",
	"near", "far", "wait",
}

// TestPipeByModel: whatever is lost, late, refused or skipped by a snapshot, the leader takes no entry for stored that
// the follower has not said it has, the follower commits what the leader has, and in the end it has all.
func TestPipeByModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelStep {
			return modelStep{rapid.SampledFrom(modelSteps).Draw(t, "what"), rapid.IntRange(1, 40).Draw(t, "n")}
		}), 1, 40).Draw(rt, "steps")
		old := rapid.SliceOfN(rapid.Uint64Range(1, 3), 0, 10).Draw(rt, "the follower's former entries")
		slices.Sort(old)
		votes := rapid.Bool().Draw(rt, "the follower votes")
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = playModel(t, steps, old, votes) })
		for _, w := range wrong {
			rt.Error(w)
		}
	})
}

func playModel(t *testing.T, steps []modelStep, old []uint64, votes bool) (wrong []string) {
	p := newModelPlay(t, old, votes)
	for _, s := range steps {
		p.step(s)
		wrong = append(wrong, p.check()...)
	}
	<-time.After(10 * time.Second)
	wrong = append(wrong, p.check()...)
	match, _ := p.lead.Follower("b")
	p.end()
	f, l := p.follower, p.log
	if !l.has(f.base, f.terms) || f.last() != uint64(len(l.terms)) || match != f.last() || f.commit != l.commit {
		wrong = append(wrong, fmt.Sprintf("in the end the follower has %d entries, the leader %d; match %d; committed %d, %d",
			f.last(), len(l.terms), match, f.commit, l.commit))
	}
	return append(wrong, f.wrong...)
}

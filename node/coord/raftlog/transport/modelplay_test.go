package transport

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// modelPlay has a leader's transport replicate a log to a follower's, as raft's replication goroutine has it.
type modelPlay struct {
	t        *testing.T
	m        *members
	delay    atomic.Int64 // of a wire
	lead, at *Transport
	log      *modelLog
	follower *modelFollower
	wg       sync.WaitGroup
	stop     chan struct{}
}

func newModelPlay(t *testing.T, old []uint64, votes bool) *modelPlay {
	p := &modelPlay{
		t: t, stop: make(chan struct{}),
		log: &modelLog{more: make(chan struct{}, 1), terms: []uint64{1, 1, 5}}, follower: &modelFollower{terms: old},
	}
	p.m = &members{}
	p.delay.Store(int64(time.Millisecond))
	p.m.delay = func() time.Duration { return time.Duration(p.delay.Load()) }
	servers := []raft.Server{{ID: "a"}, {ID: "b"}}
	if !votes {
		p.m.quiet = Quiet{For: time.Second, Silence: 2 * time.Second}
		servers[1].Suffrage = raft.Nonvoter
	}
	p.lead = p.m.open(t, "a", 2*time.Second)
	p.lead.Attach(configured{racing{state: raft.Leader}, servers})
	p.lead.measured("b", roundTrip)
	p.startFollower()
	next := uint64(len(p.log.terms) + 1)
	p.wg.Go(func() { p.replicate(next) })
	return p
}

func (p *modelPlay) startFollower() {
	p.at = p.m.open(p.t, "b", 2*time.Second)
	p.at.Attach(racing{state: raft.Follower})
	p.follower.serve(p.at, p.log, &p.wg)
}

func (p *modelPlay) end() {
	close(p.stop)
	_ = p.lead.Close()
	_ = p.at.Close()
	p.m.cut("a")
	p.wg.Wait()
}

// check reports what must not be at any time.
func (p *modelPlay) check() (wrong []string) {
	match, _ := p.lead.Follower("b")
	p.follower.mu.Lock()
	defer p.follower.mu.Unlock()
	if match > p.follower.most {
		wrong = append(wrong, fmt.Sprintf("match is %d, the follower has said %d", match, p.follower.most))
	}
	return wrong
}

// wait passes unless the play ends.
func (p *modelPlay) wait(d time.Duration) bool {
	select {
	case <-p.stop:
		return false
	case <-p.log.more:
		return true
	case <-time.After(d):
		return true
	}
}

// replicate is raft's replication to one follower.
func (p *modelPlay) replicate(next uint64) {
	for failures := 0; p.wait(200 * time.Millisecond); {
		q := p.log.request(p.lead, next)
		if q == nil {
			p.install(&next)
			continue
		}
		var resp raft.AppendEntriesResponse
		switch err := p.lead.AppendEntries("b", "b", q, &resp); {
		case err != nil:
			failures++
			<-time.After(time.Duration(min(failures, 10)) * 10 * time.Millisecond)
		case !resp.Success:
			next = max(min(next-1, resp.LastLog+1), 1)
		default:
			next, failures = lastOf(q)+1, 0
			p.pipeline(&next)
		}
	}
}

func (p *modelPlay) install(next *uint64) {
	p.log.mu.Lock()
	base := p.log.gone
	p.log.mu.Unlock()
	<-time.After(time.Duration(p.delay.Load()))
	p.follower.install(base)
	*next = base + 1
}

// pipeline sends by a pipe while that lasts; next is behind what was acknowledged.
func (p *modelPlay) pipeline(next *uint64) {
	pipe, err := p.lead.AppendEntriesPipeline("b", "b")
	if err != nil {
		return
	}
	stop, read := make(chan struct{}), make(chan struct{})
	acked := *next
	go func() {
		defer close(read)
		for {
			select {
			case f := <-pipe.Consumer():
				q := f.Request() // it may be the pipe's end
				if !f.Response().Success {
					return
				}
				acked = max(acked, lastOf(q)+1)
			case <-stop:
				return
			}
		}
	}()
	for sent := *next; err == nil && p.wait(200*time.Millisecond); {
		select {
		case <-read:
			err = errRefused
			continue
		default:
		}
		q := p.log.request(p.lead, sent)
		if q == nil {
			break
		}
		if _, err = pipe.AppendEntries(q, new(raft.AppendEntriesResponse)); err == nil {
			sent = lastOf(q) + 1
		}
	}
	close(stop)
	<-read
	_ = pipe.Close()
	*next = acked
}

// step has one thing happen.
func (p *modelPlay) step(s modelStep) {
	d := time.Duration(s.n) * 10 * time.Millisecond
	switch s.what {
	case "append": // one by one, so that many requests are in flight
		for range s.n {
			p.log.change(func() { p.log.terms = append(p.log.terms, leaderTerm) })
			<-time.After(pipePace)
		}
	case "commit": // by other voters, whatever this one has
		at := uint64(0)
		p.log.change(func() {
			if n := len(p.log.terms); p.log.terms[n-1] == leaderTerm {
				p.log.commit = uint64(n)
				at = p.log.commit
			}
		})
		if at > 0 {
			p.lead.Committed(&raft.Log{Index: at, Term: leaderTerm})
		}
	case "bad disk":
		p.setBad(true)
		<-time.After(d)
		p.setBad(false)
	case "cut":
		p.m.cut("b")
	case "compact":
		p.log.change(func() { p.log.gone = p.log.commit })
	case "delay":
		p.delay.Store(int64(time.Duration(s.n) * 3 * time.Millisecond))
	case "restart":
		_ = p.at.Close()
		p.m.cut("b")
		<-time.After(d)
		p.startFollower()
	case "near":
		p.lead.measured("b", 0)
	case "far":
		p.lead.measured("b", roundTrip)
	case "wait":
		<-time.After(d)
	}
}

func (p *modelPlay) setBad(yes bool) {
	p.follower.mu.Lock()
	defer p.follower.mu.Unlock()
	p.follower.bad = yes
}

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// abuser is a program with a member's key, at that member's host, beside its broker.
type abuser struct {
	*intruder.Intruder
	calls atomic.Uint64
}

// abuse has the hostile site say to all honest brokers what no member says, until ctx ends. What comes of it is for the
// judge to see: nothing.
func (r *run) abuse(ctx context.Context, m *member) error {
	var who *intruder.Intruder
	err := m.host.Do(func() (err error) { // where its disk is
		who, err = intruder.Member(m.Name, m.data())
		return err
	})
	if err != nil {
		return fmt.Errorf("take the key of %s: %w", m.Name, err)
	}
	who.Via = func(ctx context.Context, addr string) (net.Conn, error) { return m.host.Dial(ctx, "tcp", addr) }
	a := &abuser{Intruder: who}
	var all sync.WaitGroup
	var said [3]atomic.Int64
	for _, to := range r.honest() {
		others := rotate(r.honest(), 1)
		for i, what := range []func(ctx context.Context, to *member, n int) bool{
			func(ctx context.Context, to *member, n int) bool { return a.forges(ctx, to, others[n%len(others)]) },
			a.floods,
			a.talksNonsense,
		} {
			all.Go(func() {
				for n := 0; sleep(ctx, time.Duration([]int{20, 20, 200}[i])*time.Millisecond) == nil; n++ {
					if what(ctx, to, n) {
						said[i].Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	r.say("%s has said: %d forgeries, %d floods of old calls, %d times nonsense", m.Name, said[0].Load(), said[1].Load(),
		said[2].Load())
	return nil
}

// call dials a broker to have commands ordered.
func (a *abuser) call(ctx context.Context, to *member) (conn intruder.Conn, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	conn, err = a.Dial(ctx, a.at(to), relay.KindForward)
	if err != nil {
		cancel()
		return conn, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, func() { stop(); cancel(); _ = conn.Close() }, nil
}

func (a *abuser) at(to *member) relay.Peer {
	return relay.Peer{Site: to.Name, Addr: address(to.host, to.place.peer)}
}

// forges asks for the order of what another site has not said: each would take its work away. It reports whether it was
// heard.
func (a *abuser) forges(ctx context.Context, to, victim *member) bool {
	conn, done, err := a.call(ctx, to)
	if err != nil {
		return false
	}
	defer done()
	heard := false
	for i, body := range []command.Body{
		&command.Leave{},
		&command.Cancel{Job: command.JobID{Site: victim.Name, Num: 1}, Task: -1},
		&command.SiteLost{Site: victim.Name, Incarnation: 1, Term: 1},
	} {
		id := command.ID{Site: victim.Name, Incarnation: 1, Seq: uint64(1000 + i)}
		_, _, err := conn.Order(a.calls.Add(1), command.Command{ID: id, Body: body})
		heard = heard || err == nil
	}
	return heard
}

// floods asks for the order of what this site's broker has said in its first life, in frames as fast as they go.
func (a *abuser) floods(ctx context.Context, to *member, _ int) bool {
	const frames = 64
	conn, done, err := a.call(ctx, to)
	if err != nil {
		return false
	}
	defer done()
	old := command.Command{ID: command.ID{Site: a.Site, Incarnation: 1, Seq: 1}, Body: &command.Offer{Version: 1}}
	for range frames {
		if _, _, err = conn.Order(a.calls.Add(1), old); err != nil {
			break
		}
	}
	return err == nil
}

// talksNonsense says random bytes on connections of each kind, with a length in front that is right, or is not; and
// asks for a vote in the last term that there is.
func (a *abuser) talksNonsense(ctx context.Context, to *member, n int) bool {
	heard := false
	for kind := relay.Kind(0); kind < 16; kind++ {
		conn, done, err := a.open(ctx, to, kind)
		if err != nil {
			continue // there is no such kind, or it is not for members
		}
		frame := append(relay.Frame(nil), make([]byte, 1+(37*n)%509)...)
		_, _ = rand.Read(frame[len(relay.Frame(nil)):]) // never fails
		if n%3 > 0 {
			frame = relay.EndFrame(frame)
		}
		_, err = conn.Write(frame)
		heard = heard || err == nil
		done()
	}
	_ = forgeVote(&forgedLayer{to: a.at(to), fed: a.Group, dialer: *a.Dialer()}, a.Site) // refused
	return heard
}

func (a *abuser) open(ctx context.Context, to *member, kind relay.Kind) (conn intruder.Conn, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	conn, err = a.Dial(ctx, a.at(to), kind)
	return conn, func() { cancel(); _ = conn.Close() }, err
}

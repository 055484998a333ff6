package raftlog

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// comparing opens members whose machines can be forked.
func comparing(
	t *testing.T, c *cluster, sites ...string,
) (logs map[string]*Log, machines map[string]*coordtest.Forkable) {
	t.Helper()
	logs, machines = map[string]*Log{}, map[string]*coordtest.Forkable{}
	c.evidence = true
	for _, site := range sites {
		machines[site] = coordtest.NewForkable()
		logs[site] = c.Open(t, site, machines[site]).(*Log)
	}
	return logs, machines
}

// await waits for a condition that other goroutines bring about.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.After(coordtest.Patience); !cond(); {
		select {
		case <-end:
			t.Fatalf("%s: not so", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stopped waits until a member has stopped because its state differs, and looks
// what it leaves behind.
func stopped(t *testing.T, c *cluster, l *Log) {
	t.Helper()
	select {
	case <-l.Failed():
	case <-time.After(coordtest.Patience):
		t.Fatalf("%s goes on: %+v", l.cfg.Site, l.Compared())
	}
	if err := l.Err(); !errors.Is(err, compare.ErrDiffers) {
		t.Fatalf("%s stopped for another reason: %v", l.cfg.Site, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(l.cfg.Evidence, "*.snap"))
	if err != nil || len(files) != 2 {
		t.Errorf("kept %v, %v", files, err)
	}
	again, err := Open(patience(t), c.config(l.cfg.Site, coordtest.NewForkable()))
	if err == nil {
		_ = again.Close()
	}
	if !errors.Is(err, compare.ErrDiffers) || !strings.Contains(err.Error(), "move that folder away") {
		t.Errorf("starts again: %v", err)
	}
	if err := os.RemoveAll(l.cfg.Evidence); err != nil {
		t.Fatal(err)
	}
}

// ordersOn has a member propose something, and all of them execute it.
func ordersOn(t *testing.T, logs map[string]*Log, by string) {
	t.Helper()
	id := register(t, logs[by])
	if _, err := logs[by].Propose(patience(t), command.Command{ID: id, Body: &command.Addresses{HTTP: "x"}}); err != nil {
		t.Fatal(err)
	}
}

func TestForkedFollowerStops(t *testing.T) {
	c := newCluster(t)
	logs, machines := comparing(t, c, "a", "b", "c")
	await(t, "all agree", func() bool {
		return len(logs["a"].Compared().Same) == 2 && len(logs["b"].Compared().Same) == 2 && len(logs["c"].Compared().Same) == 2
	})
	lead := c.leader(t).cfg.Site
	wrong := map[string]string{"a": "b", "b": "c", "c": "a"}[lead]
	machines[wrong].Fork()
	stopped(t, c, logs[wrong])
	ordersOn(t, logs, lead)
	for site, l := range logs {
		if site != wrong && l.Err() != nil {
			t.Errorf("%s stopped, too: %v", site, l.Err())
		}
	}
	// What its own log says is right: it rebuilds its state from there.
	again := c.Open(t, wrong, coordtest.NewForkable()).(*Log)
	await(t, "the restarted one agrees", func() bool { return len(again.Compared().Same) == 2 })
}

func TestForkedLeaderStops(t *testing.T) {
	c := newCluster(t)
	logs, machines := comparing(t, c, "a", "b", "c")
	wrong := c.leader(t).cfg.Site
	machines[wrong].Fork()
	stopped(t, c, logs[wrong])
	next := c.leader(t).cfg.Site
	if next == wrong {
		t.Fatalf("%s leads still", wrong)
	}
	ordersOn(t, logs, next)
	for site, l := range logs {
		if site != wrong && l.Err() != nil {
			t.Errorf("%s stopped, too: %v", site, l.Err())
		}
	}
}

func TestForkedNonVoterStops(t *testing.T) {
	c := newCluster(t)
	logs, machines := comparing(t, c, "a", "b") // two are one voter and one that is not
	if n := len(logs["a"].Status().Voters); n != 1 {
		t.Fatalf("%d voters", n)
	}
	machines["b"].Fork()
	stopped(t, c, logs["b"])
	ordersOn(t, logs, "a")
	if err := logs["a"].Err(); err != nil {
		t.Error(err)
	}
}

// TestGossipStopsNobody: a stranger of whom gossip says that it is a voter, and who
// answers as that voter, is not asked for its hash: two such had stopped a member
// whose fellow voters were away.
func TestGossipStopsNobody(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	register(t, a)
	b := c.open(t, "b")
	register(t, b)
	theirs := b.answer(patience(t), joinRequest{Who: true})
	was := b.Addr()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	stranger := relay.NewMux(ln, "b", a.t.handshake, testLogger(), &relay.Network{})
	stranger.Handle(relay.KindJoin, func(conn net.Conn, _ relay.Preamble) {
		defer conn.Close()
		if _, err := relay.ReadFrame(conn, nil, maxJoinFrame); err == nil {
			said, _ := json.Marshal(theirs)
			_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), said...)))
		}
	})
	stranger.Handle(relay.KindCompare, func(conn net.Conn, _ relay.Preamble) { _ = conn.Close() })
	stranger.SetGroup(a.line.id)
	stranger.Serve()
	defer stranger.Close()
	told := &gossip{addr: map[string]string{"b": addr}}
	a = c.reopen(t, "a", func(cfg *Config) { cfg.Known = told.known })
	if _, err := a.Sync(patience(t)); err != nil {
		t.Fatal(err)
	}
	if !a.verifyPeer(patience(t), relay.Peer{Site: "b", Addr: addr}) {
		t.Fatal("the stranger does not pass for b")
	}
	conn, err := a.DialCompare(patience(t), compare.Member{Site: "b", Addr: was, Voter: true})
	if err == nil {
		_ = conn.Close()
		t.Error("the stranger is asked for b's hash")
	}
}

// provesDifference looks whether a member has kept what so many have signed, such that others can check it.
func provesDifference(t *testing.T, l *Log, camps int) {
	t.Helper()
	await(t, "evidence is kept", func() bool { files, _ := os.ReadDir(l.cfg.Proofs); return len(files) > 0 })
	files, err := filepath.Glob(filepath.Join(l.cfg.Proofs, "differs-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept %v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if p, err := compare.CheckEvidence(b); err != nil || len(p.Camps) != camps || len(p.Lied) > 0 {
		t.Errorf("it proves %v, %v", p, err)
	}
}

// One of two voters is no majority: both tell, and both go on.
func TestOneOfTwoVotersDiffers(t *testing.T) {
	c := newSecured(t)
	logs, machines := comparing(t, c, "a", "b", "c")
	lead := c.leader(t).cfg.Site
	gone := map[string]string{"a": "b", "b": "c", "c": "a"}[lead]
	if err := logs[lead].Remove(patience(t), gone); err != nil {
		t.Fatal(err)
	}
	_ = logs[gone].Close()
	delete(logs, gone)
	var wrong string
	for site := range logs {
		wrong = site // either
	}
	machines[wrong].Fork()
	await(t, "both tell", func() bool {
		for _, l := range logs {
			if len(l.Compared().Differ) != 1 {
				return false
			}
		}
		return true
	})
	rounds := map[string]time.Time{}
	for site, l := range logs {
		rounds[site] = l.Compared().At
	}
	await(t, "both look again", func() bool {
		for site, l := range logs {
			if !l.Compared().At.After(rounds[site].Add(100 * time.Millisecond)) {
				return false
			}
		}
		return true
	})
	for site, l := range logs {
		if l.Err() != nil {
			t.Errorf("%s stopped: %v", site, l.Err())
		}
		await(t, site+" lends nothing", func() bool { return l.Compared().Unsure != "" })
		provesDifference(t, l, 2)
	}
	ordersOn(t, logs, lead)
}

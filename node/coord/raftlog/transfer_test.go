package raftlog

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// answered is raft's answer to a transfer, some time.
type answered chan error

func (a answered) Error() error { return <-a }

func TestTransfersEndWhenAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr leadershipTransfers
		raftSays := make(answered)
		first := tr.begin(func() raft.Future { return raftSays })
		ended := make(chan struct{})
		go func() { tr.end(); close(ended) }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it does not wait for the transfer under way")
		case err := <-tr.begin(func() raft.Future { t.Error("a transfer begins behind the end"); return raftSays }):
			if !errors.Is(err, raft.ErrRaftShutdown) {
				t.Errorf("a transfer behind the end: %v", err)
			}
		}
		raftSays <- raft.ErrNotLeader
		<-ended
		if err := <-first; !errors.Is(err, raft.ErrNotLeader) {
			t.Errorf("the first: %v", err)
		}
	})
}

// TestTransferBesideTheEnd: a member fails while raft's main goroutine waits for its
// disk, and hands over right before or after. Raft never answers what it has not
// looked at by then: a goroutine waited for that for good.
func TestTransferBesideTheEnd(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after int
	}{{"before", 1, 0}, {"after", 0, 20}} { // raft takes every other one that comes later
		t.Run(c.name, func(t *testing.T) {
			was := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, was) }) // the cluster's own runs earlier
			_, lead, release := hangingLead(t, time.Hour)
			successor := voterDisk{id: "b", addr: lead.trans.LocalAddr()}
			give := func() { lead.leadership.transferTo(successor, reasonDisk) }
			for range c.before {
				give() // until the voter is told to stand
			}
			lead.fail(fmt.Errorf("test"))
			<-lead.Ctx.Done()
			if c.before == 0 {
				await(t, "raft shuts down", func() bool { return lead.raft.State() == raft.Shutdown })
			}
			for range c.after {
				give()
			}
			release()
			select {
			case <-closing(lead):
			case <-time.After(coordtest.Patience):
				t.Fatal("it does not end")
			}
		})
	}
}

func closing(l *Log) <-chan struct{} {
	go func() { _ = l.Close() }()
	return l.Ended()
}

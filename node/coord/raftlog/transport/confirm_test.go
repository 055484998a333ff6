package transport

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What counts as a confirmation: voters only, and only what was asked after the
// call began. raft's VerifyLeader gets both wrong.
func TestConfirmation(t *testing.T) {
	s := NewStream(ServerAddress("a", "127.0.0.1:1"), nil, nil, func(string) relay.Peer { return relay.Peer{} })
	s.Begin()
	tr := New(s, "a", time.Second, time.Second, Quiet{}, hclog.NewNullLogger())
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		tr.Wait()
	}()
	const term = 1 << 40 // of no traffic but ours
	voters := []raft.ServerID{"a", "b", "cc"}
	answers := func(id raft.ServerID, round uint64, resp raft.AppendEntriesResponse) {
		tr.answered(id, "127.0.0.1:1", &raft.AppendEntriesRequest{Term: term}, &resp, round)
	}
	begin := func() (round uint64, end chan error) {
		ctx, cancel := context.WithTimeout(t.Context(), coordtest.Patience)
		t.Cleanup(cancel)
		tr.mu.Lock()
		before := tr.round
		tr.mu.Unlock()
		end = make(chan error, 1)
		go func() { end <- tr.Confirm(ctx, term, func() []raft.ServerID { return voters }) }()
		for {
			tr.mu.Lock()
			round = tr.round
			tr.mu.Unlock()
			if round > before {
				return round, end
			}
		}
	}
	well := raft.AppendEntriesResponse{Term: term, Success: true}
	round, end := begin()
	answers("b", round-1, well) // sent before the call, heard only now
	answers("d", round, well)   // no voter
	answers("b", round-1, well)
	select {
	case err := <-end:
		t.Fatalf("confirmed by an old answer and a non-voter: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	answers("cc", round, well)
	if err := <-end; err != nil {
		t.Errorf("not confirmed by a majority: %v", err)
	}
	_, end = begin()
	answers("cc", round, raft.AppendEntriesResponse{Term: term + 1})
	select {
	case err := <-end:
		t.Errorf("one voter's word for a later term ends it: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	answers("b", round, raft.AppendEntriesResponse{Term: term + 1})
	if err := <-end; !errors.Is(err, ErrDeposed) {
		t.Errorf("the voters know a later term: %v", err)
	}
}

package raftlog

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// An entry that was stamped in one term and appended in another is skipped by
// every member, so that stamped terms never go back.
func TestVoidEntry(t *testing.T) {
	begun := make(chan struct{})
	close(begun)
	record := coordtest.NewMachine()
	m := &machine{
		m: record, calls: noCalls{}, begun: begun, onApply: func(*raft.Log) {},
		fail: func(err error) { t.Error(err) },
	}
	h := relay.Header{Term: 3}
	entry := command.AppendBatch(nil, 3, 0, nil)
	if err, _ := m.Apply(&raft.Log{Index: 8, Term: 4, Data: entry, Extensions: h.Append(nil)}).(error); !errors.Is(err,
		errVoid) {
		t.Errorf("answer %v", err)
	}
	if record.Index() != 0 || m.position.Now() != 8 {
		t.Errorf("entry number %d, position %d", record.Index(), m.position.Now())
	}
	if r := m.Apply(&raft.Log{Index: 9, Term: 3, Data: entry, Extensions: h.Append(nil)}); r != nil ||
		record.Index() != 1 {
		t.Errorf("the same in its own term: %v, entry number %d", r, record.Index())
	}
}

// After an entry that is not understood nothing more is applied.
func TestBrokenMachine(t *testing.T) {
	begun := make(chan struct{})
	close(begun)
	record := coordtest.NewMachine()
	fails := 0
	m := &machine{m: record, calls: noCalls{}, begun: begun, onApply: func(*raft.Log) {}, fail: func(error) { fails++ }}
	h := relay.Header{Term: 1}
	good := &raft.Log{Index: 3, Term: 1, Data: command.AppendBatch(nil, 1, 0, nil), Extensions: h.Append(nil)}
	for _, l := range []*raft.Log{{Index: 2, Term: 1, Data: good.Data}, good} {
		if err, _ := m.Apply(l).(error); err == nil {
			t.Errorf("entry %d was applied", l.Index)
		}
	}
	if record.Index() != 0 || m.position.Now() != 0 || fails == 0 {
		t.Errorf("entry number %d, position %d, %d failures", record.Index(), m.position.Now(), fails)
	}
	if _, err := m.Snapshot(); err == nil {
		t.Error("a broken state is written into a snapshot")
	}
}

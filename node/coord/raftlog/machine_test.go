package raftlog

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// begunMachine returns a machine whose callbacks may be used.
func begunMachine(m coord.Machine, fail func(error)) *machine {
	begun := make(chan struct{})
	close(begun)
	return &machine{m: m, calls: noCalls{}, begun: begun, onApply: func(*raft.Log) {}, fail: fail}
}

// An entry that was stamped in one term and appended in another is skipped by
// every member, so that stamped terms never go back.
func TestVoidEntry(t *testing.T) {
	record := coordtest.NewMachine()
	m := begunMachine(record, func(err error) { t.Error(err) })
	h := relay.Header{Term: 3}
	entry := command.AppendBatch(nil, 3, 0, nil, nil)
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

// A leader that writes what nobody can read stops nobody: an entry without a header is skipped, and one whose header
// counts wrongly is applied as nobody's calls.
func TestForgedHeader(t *testing.T) {
	record := coordtest.NewMachine()
	m := begunMachine(record, func(err error) { t.Error(err) })
	entry := command.AppendBatch(nil, 1, 0, nil, nil)
	err, _ := m.Apply(&raft.Log{Index: 2, Term: 1, Data: entry}).(error)
	if !errors.Is(err, errVoid) || record.Index() != 0 {
		t.Errorf("without a header: %v, entry number %d", err, record.Index())
	}
	calls := relay.NoCalls(1, 7)
	r := m.Apply(&raft.Log{Index: 3, Term: 1, Data: entry, Extensions: calls.Append(nil)})
	if r != nil || record.Index() != 1 || m.position.Now() != 3 {
		t.Errorf("with seven commands too many: %v, entry number %d, position %d", r, record.Index(), m.position.Now())
	}
	if of := calls.Of(nil); of.Commands() != 0 || of.Term != 1 {
		t.Errorf("whose calls they are: %+v", of)
	}
}

// outdated is a machine that cannot go on.
type outdated struct{ coord.Machine }

func (outdated) Apply([]byte) ([]command.Result, error) { return nil, fsm.ErrNewVersion }

// After an entry at which the machine cannot go on nothing more is applied.
func TestBrokenMachine(t *testing.T) {
	record := coordtest.NewMachine()
	fails := 0
	m := begunMachine(outdated{record}, func(error) { fails++ })
	h := relay.Header{Term: 1}
	good := &raft.Log{Index: 2, Term: 1, Data: command.AppendBatch(nil, 1, 0, nil, nil), Extensions: h.Append(nil)}
	if err, _ := m.Apply(good).(error); !errors.Is(err, fsm.ErrNewVersion) {
		t.Errorf("the machine goes on: %v", err)
	}
	m.m, good.Index = record, 3
	if err, _ := m.Apply(good).(error); err == nil {
		t.Error("entry 3 was applied")
	}
	if record.Index() != 0 || m.position.Now() != 0 || fails == 0 {
		t.Errorf("entry number %d, position %d, %d failures", record.Index(), m.position.Now(), fails)
	}
	if _, err := m.Snapshot(); err == nil {
		t.Error("a broken state is written into a snapshot")
	}
}

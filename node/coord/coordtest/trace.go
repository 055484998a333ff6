package coordtest

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// TraceTerm is later than any term that a test's leader reaches by itself.
const TraceTerm = 1000

// Trace returns a sequence of batches that a term's leader stamped, always the same: a small
// federation with jobs of all its sites.
func Trace(term uint64) [][]byte {
	sites := []string{"a", "b", "cc"}
	var batches [][]byte
	elapsed := int64(0)
	order := func(cmds ...command.Command) {
		var encoded [][]byte
		for _, c := range cmds {
			encoded = append(encoded, command.Append(nil, c))
		}
		elapsed += 7
		batches = append(batches, command.AppendBatch(nil, term, elapsed, encoded, nil))
	}
	order(command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: [16]byte{1}, Seed: 7,
		Params: command.DefaultParams(),
	}})
	for _, s := range sites {
		order(registration(s, 1))
	}
	for i := range uint64(40) {
		var cmds []command.Command
		for k, s := range sites {
			id := command.ID{Site: s, Incarnation: 1, Seq: i + 1}
			var body command.Body = &command.Submit{Jobs: []command.JobSpec{{
				Num: i, Count: 2 + uint32(k), MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000},
			}}}
			if i == 0 {
				machine := command.Machine{Name: "m", Resources: command.Resources{MilliCPU: 4000}}
				body = &command.Offer{Version: 1, Machines: []command.Machine{machine}}
			}
			cmds = append(cmds, command.Command{ID: id, Ack: i, Body: body})
		}
		order(cmds...)
		order() // time passes
	}
	return batches
}

// TraceState is a real state machine that a backend drives with the trace.
type TraceState struct{ stateMachine }

// NewTraceState returns an empty one.
func NewTraceState() *TraceState { return &TraceState{stateMachine{s: fsm.New()}} }

var _ coord.Machine = (*TraceState)(nil)

// Check compares the state with one that no backend drove: the empty first entry
// of a leader, then the trace of a term.
func (s *TraceState) Check(t *testing.T, term uint64) {
	t.Helper()
	want := fsm.New()
	for i, b := range append([][]byte{command.AppendBatch(nil, term, 0, nil, nil)}, Trace(term)...) {
		batch, err := command.DecodeBatch(b)
		if err == nil {
			_, err = want.Apply(batch)
		}
		if err != nil {
			t.Fatalf("entry %d of the trace: %v", i+1, err)
		}
	}
	index, hash := s.Hash()
	if index != want.Index() || hash != want.Hash() {
		t.Errorf("entry %d has hash %x; by itself entry %d has %x", index, hash, want.Index(), want.Hash())
	}
	if len(want.Queue()) == 0 {
		t.Error("nothing waits at the end of the trace: the test shows little")
	}
}

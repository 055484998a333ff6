package zk

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// TestForgedHeader: whoever has the ensemble's password stops nobody by an entry whose header cannot be read, or counts
// wrongly: it has its number in the order, and is nobody's calls.
func TestForgedHeader(t *testing.T) {
	record := coordtest.NewMachine()
	m := &machine{m: record}
	calls := relay.NoCalls(1, 7)
	for n, header := range [][]byte{[]byte("no header"), nil, calls.Append(nil)} {
		e := &tree.Entry{Header: header, Batch: command.AppendBatch(nil, 1, 0, nil, nil)}
		if err := m.apply(uint64(n)+1, e, nil); err != nil || record.Index() != uint64(n)+1 {
			t.Errorf("%q: entry %d, %v", header, record.Index(), err)
		}
	}
}

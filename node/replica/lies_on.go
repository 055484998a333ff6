//go:build mutate

package replica

import (
	"bytes"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

func init() { mutate.Lies.Entry, mutate.Lies.State = withoutOthers, withInventedRun }

// withoutOthers returns an entry without what other sites than these two have said in it.
func withoutOthers(entry []byte, leader, victim string) ([]byte, bool) {
	batch, err := command.DecodeBatch(entry)
	cmds, cause := command.Split(entry)
	if err != nil || cause != nil {
		return nil, false
	}
	var kept []command.Bundle
	var said [][]byte
	for _, b := range batch.Bundles {
		if b.Site == leader || b.Site == victim {
			kept, said = append(kept, b), append(said, cmds[:b.Commands]...)
		}
		cmds = cmds[b.Commands:]
	}
	if len(kept) == len(batch.Bundles) {
		return nil, false
	}
	return command.AppendBatch(nil, batch.Term, batch.Elapsed, said, kept), true
}

// withInventedRun returns a snapshot in which all others owe a leader for what it never ran, with the history as it is.
func withInventedRun(snapshot []byte, leader string) ([]byte, error) {
	chain, state, err := ReadSnapshot(bytes.NewReader(snapshot))
	if err != nil {
		return nil, fmt.Errorf("restore what is to be changed: %w", err)
	}
	state.InventRuns(leader)
	f := frozen{state.Snapshot(), chain}
	defer f.Release()
	var out bytes.Buffer
	err = f.Write(&out)
	return out.Bytes(), err
}

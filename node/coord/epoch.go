package coord

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Errors of moving a federation to another backend.
var (
	// ErrRunning: brokers of the federation run, and must not.
	ErrRunning = errors.New("brokers still run")
	// ErrMoved: the state was exported, to go on with another backend.
	ErrMoved = errors.New("the state was exported")
)

// BeginEpoch has a machine begin a later epoch behind its last entry (command.Recover):
// nothing is assigned for holdMs of log time, or a lease and the margin if that is
// more. site is the one that goes on first, and known to the state. It is no entry
// of any log: only a backend that starts from this very state may call it, before
// anybody can propose.
func BeginEpoch(m Machine, site string, epoch uint64, holdMs int64) error {
	cmd := command.Append(nil, command.Command{
		ID:   command.ID{Site: site},
		Body: &command.Recover{Epoch: epoch, HoldMs: holdMs},
	})
	results, err := m.Apply(command.AppendBatch(nil, 0, 0, [][]byte{cmd}, nil))
	switch {
	case err != nil:
		return fmt.Errorf("begin epoch %d: %w", epoch, err)
	case len(results) != 1 || results[0].Code != command.OK:
		return fmt.Errorf("begin epoch %d: refused: %v", epoch, results)
	}
	return nil
}

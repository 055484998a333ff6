package node

import (
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// AttemptOf returns the name in the state of an attempt that handlers know by an id.
func AttemptOf(id executor.ID) (command.AttemptRef, error) {
	job, err := command.ParseJobID(id.Job)
	if err != nil {
		return command.AttemptRef{}, fmt.Errorf("read attempt %s: %w", id, err)
	}
	return command.AttemptRef{Job: job, Task: id.Task, Attempt: id.Attempt, Token: id.Token}, nil
}

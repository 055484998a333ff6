package attempts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Open reads both texts of a site's payload.
type Open func(owner string, payload []byte) (public, text []byte, err error)

// Memory is what was last made of a job: its attempts come in rows, and each has
// the job's name made and read and its payload parsed, several times.
type Memory struct {
	open Open
	id   command.JobID
	name string // of id, "" = none yet
	// spec is what payload says, of that owner; nil = none yet.
	owner   string
	payload []byte
	spec    jobspec.Spec
}

// ID returns the handlers' name of an attempt of the state.
func (m *Memory) ID(ref command.AttemptRef) executor.ID {
	return executor.ID{Job: m.NameOf(ref.Job), Task: ref.Task, Attempt: ref.Attempt, Token: ref.Token}
}

// Ref returns the inverse of ID.
func (m *Memory) Ref(id executor.ID) (command.AttemptRef, error) {
	job, err := m.Parse(id.Job)
	if err != nil {
		return command.AttemptRef{}, fmt.Errorf("read attempt %s: %w", id, err)
	}
	return command.AttemptRef{Job: job, Task: id.Task, Attempt: id.Attempt, Token: id.Token}, nil
}

// NameOf returns the text of a job's id.
func (m *Memory) NameOf(id command.JobID) string {
	if m.id != id || m.name == "" {
		m.id, m.name = id, id.String()
	}
	return m.name
}

// Parse reads the text of a job's id.
func (m *Memory) Parse(name string) (command.JobID, error) {
	if m.name == name && name != "" {
		return m.id, nil
	}
	id, err := command.ParseJobID(name)
	if err == nil {
		m.id, m.name = id, name
	}
	return id, err
}

// specOf returns what a payload of an owner says: a copy, the caller's to keep.
func (m *Memory) specOf(owner string, payload []byte) (jobspec.Spec, error) {
	if m.payload == nil || m.owner != owner || !bytes.Equal(m.payload, payload) {
		public, text, err := m.open(owner, payload)
		if err != nil {
			return jobspec.Spec{}, err
		}
		spec, err := jobspec.ReadTexts(public, text)
		if err != nil {
			return jobspec.Spec{}, hide(public, err)
		}
		m.owner, m.payload, m.spec = owner, payload, spec
	}
	spec := m.spec
	spec.Command, spec.Env = slices.Clone(spec.Command), maps.Clone(spec.Env)
	spec.Inputs = slices.Clone(spec.Inputs)
	return spec, nil
}

// hide returns why a payload cannot be read. All members read it, so of the sealed text nothing is quoted.
func hide(public []byte, err error) error {
	if _, also := jobspec.ReadTexts(public, nil); also == nil {
		return errors.New("its sealed part is damaged, or of a later version of its owner's broker")
	}
	return err
}

package attempts

import (
	"errors"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/seal"
)

// What is remembered of the last job is never given for another one.
func TestMemoryIsOfTheLastJobOnly(t *testing.T) {
	var m Memory
	for range 2 {
		for _, job := range []command.JobID{{Site: "a", Num: 1}, {Site: "a", Num: 1}, {Site: "b", Num: 1}, {Site: "a", Num: 12}} {
			ref := command.AttemptRef{Job: job, Task: 3, Attempt: 2, Token: 9}
			id := m.ID(ref)
			if id != (executor.ID{Job: job.String(), Task: 3, Attempt: 2, Token: 9}) {
				t.Errorf("%s is named %s", job, id)
			}
			if got, err := m.Ref(id); err != nil || got != ref {
				t.Errorf("%s is read as %+v: %v", id, got, err)
			}
		}
		if _, err := m.Ref(executor.ID{Job: "nothing"}); !errors.Is(err, command.ErrBadID) {
			t.Errorf("a name of no job is read: %v", err)
		}
		if _, err := m.Ref(executor.ID{}); !errors.Is(err, command.ErrBadID) {
			t.Errorf("no name is read: %v", err)
		}
	}
}

// Tasks of one payload have commands and environments of their own.
func TestMemoryGivesCopies(t *testing.T) {
	sealer := seal.New(seal.Secret{7}, seal.Whose{Site: "a"})
	payloadOf := func(command string) []byte {
		spec := jobspec.DefaultSpec()
		spec.Command, spec.Env = []string{command}, map[string]string{"COLOR": command}
		return spec.JobSpec("a", 1, 0, sealer).Payload
	}
	m := Memory{open: func(_ string, payload []byte) (public, text []byte, err error) { return sealer.Open(payload) }}
	for range 2 {
		for _, command := range []string{"one", "one", "two"} {
			spec, err := m.specOf("a", payloadOf(command))
			if err != nil || spec.Command[0] != command || spec.Env["COLOR"] != command {
				t.Fatalf("%s is read as %+v: %v", command, spec, err)
			}
			spec.Command[0], spec.Env["COLOR"] = "changed", "changed"
		}
		if _, err := m.specOf("a", []byte("{")); err == nil {
			t.Error("half a payload is read")
		}
		if _, err := m.specOf("a", nil); err == nil {
			t.Error("no payload is read")
		}
	}
}

// TestUnreadableTextIsNotQuoted: why a payload cannot be read goes to all members.
func TestUnreadableTextIsNotQuoted(t *testing.T) {
	m := Memory{open: func(string, []byte) (public, text []byte, err error) {
		return []byte("{}"), []byte(`{"secret":"secret"}`), nil
	}}
	if _, err := m.specOf("a", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("it is told as %v", err)
	}
}

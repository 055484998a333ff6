package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// bareStates is the state machine alone, at as many members as the federation has
// sites: what every job costs them, whatever brings it.
type bareStates struct {
	members [siteCount]bareMember
	sites   []bareSite // of client n; each is used by one goroutine
}

// bareMember applies one entry at a time.
type bareMember struct {
	mu sync.Mutex
	s  *fsm.State
}

// bareSite is who submits.
type bareSite struct {
	name    string
	jobs    uint64 // so far
	entries uint64
}

// newBareStates has a federation of as many sites as there are clients.
func newBareStates(clients int) (*bareStates, error) {
	b := &bareStates{sites: make([]bareSite, clients)}
	for i := range b.members {
		b.members[i].s = fsm.New()
	}
	cmds := []command.Command{{
		ID:   command.ID{Site: "bare"},
		Body: &command.Genesis{Federation: [16]byte{1}, Params: command.DefaultParams()},
	}}
	for i := range b.sites {
		name := fmt.Sprintf("bare-%d", i)
		b.sites[i].name = name
		cmds = append(cmds, command.Command{ID: command.ID{Site: name}, Body: &command.Register{
			Node: [16]byte{1, byte(i)}, Boot: [16]byte{1, byte(i)}, HTTP: "bare:1", Peer: "bare:2", MaxVersion: 1,
		}})
	}
	return b, b.apply(encodeBatch(cmds...))
}

func encodeBatch(cmds ...command.Command) []byte {
	encoded := make([][]byte, len(cmds))
	for i, c := range cmds {
		encoded[i] = command.Append(nil, c)
	}
	return command.AppendBatch(nil, 1, 0, encoded, nil)
}

// entry is one that submits a job a line, as a broker publishes a request; the line
// stands for what the state keeps of the spec.
func (x *bareSite) entry(lines [][]byte) []byte {
	jobs := make([]command.JobSpec, len(lines))
	for i, line := range lines {
		x.jobs++
		jobs[i] = command.JobSpec{
			Num: x.jobs, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000}, Only: []string{x.name},
			Payload: line,
		}
	}
	x.entries++
	return encodeBatch(command.Command{
		ID: command.ID{Site: x.name, Incarnation: 1, Seq: x.entries}, Ack: x.entries - 1,
		Body: &command.Submit{Jobs: jobs},
	})
}

// apply has all members decode and apply an entry.
func (b *bareStates) apply(entry []byte) error {
	var wg sync.WaitGroup
	var errs [siteCount]error
	for i := range b.members {
		wg.Go(func() { errs[i] = b.members[i].apply(entry) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

func (m *bareMember) apply(entry []byte) error {
	batch, err := command.DecodeBatch(entry)
	if err != nil {
		return fmt.Errorf("decode bare entry: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	results, err := m.s.Apply(batch)
	if err != nil {
		return fmt.Errorf("apply bare entry: %w", err)
	}
	for _, r := range results {
		if r.Code != command.OK || r.Jobs != nil {
			return fmt.Errorf("apply bare entry: the state answers %v, %v", r.Code, r.Jobs)
		}
	}
	return nil
}

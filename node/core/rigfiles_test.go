package core

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/inputs"
)

// rigFiles is how files travel with a site's tasks.
type rigFiles struct {
	travel bool
	output command.Output // of what is collected
	// hold: files that are fetched take their time; staging are those of which they are.
	hold    bool
	staging map[executor.ID]bool
	// staged are those that are here, ended those that will not be, in this life of the broker.
	staged, ended map[executor.ID]bool
}

// filesRig is newRig with files that travel.
func filesRig(t *testing.T, cores ...int64) *rig {
	t.Helper()
	r := newRig(t, command.DefaultParams(), cores...)
	r.travel()
	return r
}

func (r *rig) travel() {
	for _, s := range r.sites {
		s.files.travel = true
		s.files.output = command.Output{Manifest: [32]byte{s.name[0]}, Size: 9, Bytes: 70}
		s.boot()
	}
	r.settle()
}

// openFiles tells a broker that has just been started that files travel.
func (s *rigSite) openFiles() {
	f := &s.files
	f.staging, f.staged, f.ended = map[executor.ID]bool{}, map[executor.ID]bool{}, map[executor.ID]bool{}
	if s.files.travel {
		s.core.LendFiles(command.MaxOutputBytes)
		s.core.machines.AddHandler("local", Terms{Site: s.name, Collects: true})
	}
}

// hear has the broker hear of something, later if the rig says so.
func (s *rigSite) hear(ev Event) {
	if s.rig.late != nil {
		s.rig.late(s, ev)
		return
	}
	s.turn(ev)
}

// stage fetches the files of a task, and reports whether it has any; if not, or if they are here, it is to be started.
func (s *rigSite) stage(st StartEffect) bool {
	s.rig.t.Helper()
	switch {
	case !st.Stage:
		fetched := st.Task.Owner == s.name || len(st.Inputs) == 0 || s.files.staged[st.ID]
		if !fetched || s.files.ended[st.ID] {
			s.rig.t.Fatalf("%s is started at %s without its files", st.ID, s.name)
		}
		return false
	case s.files.staging[st.ID] || s.files.staged[st.ID]:
		s.rig.t.Fatalf("%s is staged twice at %s", st.ID, s.name)
	}
	s.files.staging[st.ID] = true
	s.hear(PreparingEvent{ID: st.ID})
	if !s.files.hold {
		s.here(st.ID)
	}
	return true
}

// here says that the files of an attempt are here.
func (s *rigSite) here(id executor.ID) {
	delete(s.files.staging, id)
	s.files.staged[id] = true
	s.hear(StagedEvent{ID: id, InBytes: 42})
}

// missing says why the files of an attempt are not here.
func (s *rigSite) missing(id executor.ID, f inputs.Fault, why string) {
	delete(s.files.staging, id)
	s.files.ended[id] = true
	s.hear(UnstagedEvent{ID: id, Fault: f, Why: why})
}

// unstage ends the fetching for an attempt that is to end.
func (s *rigSite) unstage(st StopEffect) {
	if st.Early && s.files.staging[st.ID] {
		s.missing(st.ID, inputs.Cancelled, "it is to end before its start")
	}
}

package broker

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// importing submits a job of alice's whose inputs come later.
func (s *testSite) importing(t *testing.T) command.JobID {
	t.Helper()
	spec, err := jobspec.ParseSpec([]byte(`{"command":["x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	a := s.Submit(t.Context(), []node.Request{{
		Spec: spec, User: "alice", Importing: true, Attached: &node.Attached{Document: json.RawMessage(`{"a":1}`)},
	}})[0]
	if a.Err != nil || a.State != "queued" {
		t.Fatalf("%+v", a)
	}
	return a.ID
}

// awaits returns the only job that awaits its inputs.
func (s *testSite) awaits(t *testing.T) command.JobID {
	t.Helper()
	ids, err := s.AwaitInputs(t.Context())
	if err != nil || len(ids) != 1 {
		t.Fatalf("%v %v", ids, err)
	}
	return ids[0]
}

// TestInputsComeLater: a job that was accepted without its inputs waits for them over a restart, and gets what it names
// then; that stays as long as the job.
func TestInputsComeLater(t *testing.T) {
	s := startLeaving(t, 1)[0]
	id := s.importing(t)
	s.again(t)
	if got := s.awaits(t); got != id {
		t.Fatal(got)
	}
	blob, err := s.PutBlob(t.Context(), "alice", strings.NewReader("input"), 100)
	if err != nil {
		t.Fatal(err)
	}
	with := func(hash files.Hash) jobspec.Spec {
		spec, err := jobspec.ParseSpec([]byte(`{"command":["x"],"inputs":[{"path":"in","sha256":"` + hash.String() + `"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	var missing *node.InputError
	if err = s.Brought(t.Context(), id, with(files.HashOf([]byte("none")))); !errors.As(err, &missing) {
		t.Errorf("what is not here: %v", err)
	}
	if err = s.Brought(t.Context(), id, with(blob.Hash)); err != nil {
		t.Fatal(err)
	}
	if user, named := s.owned.inputs.Names(id.Num, blob.Hash); !named || user != "alice" {
		t.Errorf("%q %t", user, named)
	}
	started := <-s.handler.started
	s.handler.end(started, executor.Result{Started: time.Now(), Run: time.Second})
	if end := s.exported(t, id); end.State != "succeeded" {
		t.Errorf("%+v", end)
	}
	<-s.AttachedEnded(id)
	if err = s.Brought(t.Context(), id, with(blob.Hash)); !errors.Is(err, node.ErrEnded) {
		t.Error(err)
	}
	if _, named := s.owned.inputs.Names(id.Num, blob.Hash); named {
		t.Error("the files of a job that has ended are kept for it")
	}
}

// TestInputsThatDoNotCome: the end says so, and not that its user cancelled it, also after a restart; a job that was
// cancelled by its user has ended for who brings its inputs.
func TestInputsThatDoNotCome(t *testing.T) {
	s := startLeaving(t, 1)[0]
	id := s.importing(t)
	over := s.AttachedEnded(id)
	if err := s.NotBrought(t.Context(), id, "no such file"); err != nil {
		t.Fatal(err)
	}
	<-over
	job, err := s.Job(t.Context(), id)
	if err != nil || job.State != "cancelled" || job.Reason != "no such file" {
		t.Errorf("%+v %v", job, err)
	}
	s.again(t)
	if end := s.exported(t, id); !end.Unbrought || end.Reason != "no such file" || end.Created.IsZero() {
		t.Errorf("%+v", end)
	}
	if err = s.NotBrought(t.Context(), id, "again"); !errors.Is(err, node.ErrEnded) {
		t.Error(err)
	}
}

// TestCancelledBeforeItsInputsFailed: who cancels a job first has cancelled it, although its inputs turn out a moment
// later not to come. The end was noted as theirs before it was asked whether the job waits still.
func TestCancelledBeforeItsInputsFailed(t *testing.T) {
	s := startLeaving(t, 1)[0]
	for range 20 {
		id := s.importing(t)
		over := s.AttachedEnded(id)
		if err := s.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := s.NotBrought(t.Context(), id, "no such file"); !errors.Is(err, node.ErrEnded) {
			t.Error(err)
		}
		<-over
		if end := s.exported(t, id); end.Unbrought || end.State != "cancelled" || end.Why != "" {
			t.Fatalf("%+v", end)
		}
	}
}

package attempts

import (
	"reflect"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/core/machines"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestStartsTellOfFiles: who starts a task hears which files it is to find, and its handler which it is to keep.
func TestStartsTellOfFiles(t *testing.T) {
	b := NewBook("site-1", &turn.Clock{}, &machines.Set{}, nil)
	spec := jobspec.DefaultSpec()
	spec.Inputs = []jobspec.Input{
		{Path: "in.txt", Blob: files.BlobOf([]byte("in"))},
		{Path: "run.sh", From: jobspec.FromContent, Content: []byte("date"), Executable: true},
	}
	spec.Outputs = jobspec.Outputs{
		Paths: []string{"out/*.csv"}, Optional: []string{"log/"}, MaxBytes: 1 << 20, When: executor.WhenSuccess,
	}
	b.owner, b.payload, b.spec = "site-2", []byte("files"), spec
	st, err := b.StartOf(Record{ID: executor.ID{Job: "site-2.1", Task: 3}}, "site-2", 0, []byte("files"))
	if err != nil || st.Index != 3 || !reflect.DeepEqual(st.Inputs, spec.Inputs) || st.Task.Files != nil {
		t.Errorf("inputs %+v, files %v, %v", st.Inputs, st.Task.Files, err)
	}
	want := executor.Outputs{
		Paths: []string{"out/*.csv"}, Optional: []string{"log/"}, MaxBytes: 1 << 20, When: executor.WhenSuccess,
	}
	if !reflect.DeepEqual(st.Task.Outputs, want) {
		t.Errorf("outputs %+v", st.Task.Outputs)
	}
	st.Inputs[0].Path, st.Task.Outputs.Paths[0] = "changed", "changed"
	if again, _ := b.StartOf(Record{}, "site-2", 0, []byte("files")); again.Inputs[0].Path != "in.txt" ||
		again.Task.Outputs.Paths[0] != "out/*.csv" {
		t.Errorf("tasks of one job share their files: %+v", again)
	}

	b.spec.Indices, _ = jobspec.ParseIndices("5,9")
	if st, _ = b.StartOf(Record{ID: executor.ID{Task: 1}}, "site-2", 0, []byte("files")); st.Index != 9 {
		t.Errorf("index %d", st.Index)
	}
	b.spec.Outputs = jobspec.Outputs{MaxBytes: jobspec.DefaultOutputBytes}
	if st, _ = b.StartOf(Record{}, "site-2", 0, []byte("files")); !reflect.DeepEqual(st.Task.Outputs, executor.Outputs{}) {
		t.Errorf("a job that wants nothing has outputs %+v", st.Task.Outputs)
	}
}

package jobcmd

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

func TestFilesInWords(t *testing.T) {
	size, text := int64(3<<20), ""
	list := []wire.SpecInput{
		{Path: "ref.fa", SHA256: "ab", Size: &size},
		{Path: "cfg", Manifest: "ab", Size: &size},
		{Path: "in", Each: "ab"},
		{Path: "x", URL: "https://a.example/x"},
		{Path: "run.sh", Content: &text},
	}
	const want = "ref.fa (3.0 MiB), cfg/, in (one for each task), x (from https://a.example/x), run.sh"
	if got := strings.Join(inputWords(list), ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if words := inputWords(make([]wire.SpecInput, mostInputs+3)); len(words) != mostInputs+1 || words[mostInputs] != "3 more" {
		t.Errorf("%q", words)
	}
	out := &wire.SpecOutputs{Paths: []string{"a", "b/"}, Optional: []string{"c"}, Max: "1Gi", When: "success"}
	if got := outputWords(out); got != "a, b/, c (if there); at most 1Gi; after success only" || outputWords(nil) != "" {
		t.Error(got)
	}
}

package fsm

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// recordAgain records the snapshots and hashes of this code. That is right only if a format changed, or the meaning
// of a format before a release has written it.
var recordAgain = flag.Bool("record", false, "record the snapshots and hashes of testdata/replay again")

// TestAccountsStayWhatTheyWere plays a recorded log under SIMPL_DIRECT, from its beginning and from the snapshot in
// its middle: both end with the recorded hashes.
func TestAccountsStayWhatTheyWere(t *testing.T) { staysWhatItWas(t, "accounts") }

// TestWaitsStayWhatTheyWere plays one under CE, SHAPLEY and ALONE, with home runs and what sites report of
// their own use.
func TestWaitsStayWhatTheyWere(t *testing.T) { staysWhatItWas(t, "waits") }

func staysWhatItWas(t *testing.T, name string) {
	t.Helper()
	if *recordAgain {
		recordFile(t, "testdata/replay/"+name)
	}
	f, err := os.Open("testdata/replay/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	states := []*State{New()}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		what, text, _ := strings.Cut(lines.Text(), " ")
		data, _ := base64.StdEncoding.DecodeString(text)
		switch what {
		case "entry":
			for _, s := range states {
				replay(t, s, data)
			}
		case "snapshot":
			s, err := Restore(bytes.NewReader(data))
			if err != nil || !bytes.Equal(snapshotOf(t, s), data) || s.Hash() != states[0].Hash() {
				t.Fatalf("the snapshot at entry %d: %v", states[0].index, err)
			}
			states = append(states, s)
		case "hash":
			for i, s := range states {
				if got := fmt.Sprintf("%x", s.Hash()); got != text || s.decisions == 0 {
					t.Fatalf("state %d after entry %d has hash %s, had %s", i, s.index, got, text)
				}
			}
		}
	}
	if err := lines.Err(); err != nil || len(states) != 2 || states[0].index < 200 {
		t.Fatalf("%d states, entry %d, %v", len(states), states[0].index, err)
	}
}

func replay(t *testing.T, s *State, entry []byte) {
	t.Helper()
	b, err := command.DecodeBatch(entry)
	if err == nil {
		_, err = s.Apply(b)
	}
	if err != nil {
		t.Fatalf("entry %d: %v", s.index+1, err)
	}
}

// recordFile plays a file's entries and writes its snapshots and hashes again.
func recordFile(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, out := New(), []string{}
	for line := range strings.Lines(string(data)) {
		what, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "entry":
			entry, _ := base64.StdEncoding.DecodeString(text)
			replay(t, s, entry)
		case "snapshot":
			text = base64.StdEncoding.EncodeToString(snapshotOf(t, s))
		case "hash":
			text = fmt.Sprintf("%x", s.Hash())
		}
		out = append(out, strings.TrimSpace(what+" "+text)+"\n")
	}
	if err := os.WriteFile(file, []byte(strings.Join(out, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

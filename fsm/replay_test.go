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
)

// recordAnew has the snapshots and hashes be those of this code. That is right only where
// a format changed, or what a format means before anybody has written it.
var recordAnew = flag.Bool("record", false, "record the snapshots and hashes of testdata/replay anew")

// TestVersion2StaysWhatItWas plays a log of version 2 that the code before version
// 3 wrote, from its beginning and from that code's snapshot in the middle: both end
// with the hash that it had. The file was rewritten for the formats 3 (a decline bars
// the job), 4 (a parameter more) and 5 (each site keeps its own ended jobs); it is
// never rewritten within a format.
func TestVersion2StaysWhatItWas(t *testing.T) { staysWhatItWas(t, "version2") }

// TestVersion3StaysWhatItWas plays one under CE, SHAPLEY and ALONE, with home runs and
// what sites say that they use themselves, that the code before version 4 wrote.
func TestVersion3StaysWhatItWas(t *testing.T) { staysWhatItWas(t, "version3") }

func staysWhatItWas(t *testing.T, name string) {
	t.Helper()
	if *recordAnew {
		recordAgain(t, "testdata/replay/"+name)
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
	b, err := DecodeBatch(entry)
	if err == nil {
		_, err = s.Apply(b)
	}
	if err != nil {
		t.Fatalf("entry %d: %v", s.index+1, err)
	}
}

// recordAgain plays a file's entries and writes its snapshots and hashes anew.
func recordAgain(t *testing.T, file string) {
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

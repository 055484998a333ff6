package fsm

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
)

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

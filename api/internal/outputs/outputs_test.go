package outputs

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node"
)

// TestTailKeepsTheLastLines holds the bounds of a tail.
func TestTailKeepsTheLastLines(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\nb": "a\nb", "a\nb\nc": "b\nc", "a\nb\nc\n": "b\nc\n", "\n\n\n": "\n\n"} {
		tail, size, err := tailOf(strings.NewReader(text), 2)
		if string(tail) != want || int(size) != len(text) || err != nil {
			t.Errorf("%q: %q of %d bytes, %v", text, tail, size, err)
		}
	}
	long := strings.Repeat("x", 5*maxTailBytes)
	if tail, size, _ := tailOf(strings.NewReader(long), 2); len(tail) != maxTailBytes || int(size) != len(long) {
		t.Errorf("of a long line %d bytes, of %d", len(tail), size)
	}
	o := outputWriter{w: io.Discard, control: http.NewResponseController(discard{})}
	done := make(chan error, 1)
	go func() { done <- o.copy(1, 1, strings.NewReader("a\n"+long+"\nb")) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a long line is never sent")
	}
}

// TestAwaySitesAreAskedAgain: a site that was away for a moment is asked again later by who
// follows many tasks, and not before that.
func TestAwaySitesAreAskedAgain(t *testing.T) {
	m := manyLogs{missed: map[string]missedSite{
		"site-2": {&problem.New(503, "executor-unreachable", "It is away", "").Problem, time.Now()},
		"site-3": {&problem.New(503, "executor-unreachable", "It is away", "").Problem, time.Now().Add(-missedFor)},
	}}
	asked := ""
	for _, site := range []string{"site-2", "site-3"} {
		_, err := m.atSite(t.Context(), site, func() (io.ReadCloser, error) {
			asked += site
			return nil,
				node.ErrOutputGone
		})
		if err == nil {
			t.Errorf("%s: no error", site)
		}
	}
	if asked != "site-3" {
		t.Errorf("asked %q", asked)
	}
}

// discard is a client that takes everything.
type discard struct{ http.ResponseWriter }

// FlushError implements what http.ResponseController looks for.
func (discard) FlushError() error { return nil }

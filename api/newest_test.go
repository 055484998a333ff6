package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// keeps has a broker keep an attempt's output of some tasks, by position.
func keeps(f *fakeBroker, attempts map[uint32]uint32) {
	f.kept = func(position uint32) node.KeptOutput { return node.KeptOutput{Attempt: attempts[position]} }
	f.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		if !q.Here {
			return nil, &node.AnywhereError{
				Query: node.LogQuery{Job: q.Job, Task: q.Task + 100, Stream: q.Stream},
				What:  "the output of task site-1.1/0", Sites: f.mayHave,
			}
		}
		if attempts[q.Task] != q.Attempt {
			return nil, node.ErrNotFound
		}
		return io.NopCloser(strings.NewReader(fmt.Sprintf("%d.%d of %s\n", q.Task, q.Attempt, f.Site()))), nil
	}
}

// fails has a broker keep no output, and say why.
func fails(f *fakeBroker, err error) {
	f.kept = func(uint32) node.KeptOutput { return node.KeptOutput{Err: err} }
}

// TestNewestOutput: of a task that the state keeps no record of, the newest output that
// any site has is read; where there is none, the answer says what is known.
func TestNewestOutput(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	older, atOlder := member(t, "site-2", Config{})
	newer, atNewer := member(t, "site-3", Config{})
	nothing, atNothing := member(t, "site-4", Config{})
	gone, atGone := member(t, "site-5", Config{})
	damaged, atDamaged := member(t, "site-6", Config{})
	busy, atBusy := member(t, "site-7", Config{})
	away := node.ElsewhereError{Site: "site-8", Peer: nobody(t)}
	keeps(older, map[uint32]uint32{100: 1})
	keeps(newer, map[uint32]uint32{100: 3})
	keeps(nothing, nil)
	fails(gone, fmt.Errorf("its output was removed by site site-5: %w", node.ErrOutputGone))
	fails(damaged, fmt.Errorf("its output was kept at site site-6: %w", node.ErrOutputDamaged))
	fails(busy, fmt.Errorf("its output may be at site site-7: %w", node.ErrOutputUnreadable))
	s := serve(t, asked, Config{})
	for name, c := range map[string]struct {
		own    uint32
		others []node.ElsewhereError
		status int
		text   []string
	}{
		"of others":            {0, []node.ElsewhereError{atOlder, atNewer, atNothing}, 200, []string{"100.3 of site-3"}},
		"own is older":         {2, []node.ElsewhereError{atOlder, atNewer}, 200, []string{"100.3 of site-3"}},
		"own is newer":         {4, []node.ElsewhereError{atOlder, atNewer, atGone}, 200, []string{"100.4 of site-1"}},
		"own alone":            {1, nil, 200, []string{"100.1 of site-1"}},
		"found, one is away":   {0, []node.ElsewhereError{away, atOlder}, 200, []string{"100.1 of site-2"}},
		"none, one is away":    {0, []node.ElsewhereError{away, atNothing, atGone}, 503, []string{"executor-unreachable", "site-8"}},
		"removed":              {0, []node.ElsewhereError{atNothing, atGone}, 404, []string{"output-gone", "removed by site site-5"}},
		"damaged":              {0, []node.ElsewhereError{atGone, atDamaged}, 410, []string{"output-damaged", "site site-6"}},
		"cannot be read now":   {0, []node.ElsewhereError{atGone, atBusy, atDamaged}, 503, []string{"output-unreadable", "site site-7"}},
		"nobody knows of it":   {0, []node.ElsewhereError{atNothing}, 404, []string{"not-found", "task site-1.1/0"}},
		"one removed, one has": {0, []node.ElsewhereError{atGone, atBusy, atOlder}, 200, []string{"100.1 of site-2"}},
	} {
		keeps(asked, map[uint32]uint32{100: c.own})
		asked.mayHave = c.others
		w := ask(s, "GET", "/v1/jobs/site-1.1/logs", "", "")
		for _, text := range c.text {
			if w.Code != c.status || !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s: %d %s, want %d and %q", name, w.Code, w.Body, c.status, text)
			}
		}
	}
}

// TestNewestDoesNotWaitForTheSilent: once an output was found, a site that does not
// answer is waited for a moment, not until it must have answered.
func TestNewestDoesNotWaitForTheSilent(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	silent, atSilent := member(t, "site-2", Config{})
	held := make(chan struct{})
	silent.kept = func(uint32) node.KeptOutput { <-held; return node.KeptOutput{} }
	keeps(asked, map[uint32]uint32{100: 1})
	asked.mayHave = []node.ElsewhereError{atSilent}
	s := serve(t, asked, Config{PeerTimeout: time.Hour})
	if w := ask(s, "GET", "/v1/jobs/site-1.1/logs", "", ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	close(held)
}

// TestManyUnrecorded: the output of many tasks that the state keeps no record of is found
// with one question to each site, and nothing is said of those that never began.
func TestManyUnrecorded(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	other, atOther := member(t, "site-2", Config{})
	gone, atGone := member(t, "site-3", Config{})
	asked.jobs[0].Spec.Count = 6
	exit := 0
	ended := func(i uint32) node.Task {
		return node.Task{State: "succeeded", ExitCode: &exit, Unrecorded: true, Position: 100 + i}
	}
	asked.tasks = map[uint32]node.Task{
		0: ended(0), 1: ended(1), 2: ended(2), 3: ended(3),
		4: {State: "cancelled", Unrecorded: true, Position: 104}, // it had not begun
	}
	keeps(asked, map[uint32]uint32{100: 1})
	keeps(other, map[uint32]uint32{101: 1, 102: 2})
	gone.kept = func(position uint32) (k node.KeptOutput) {
		if position == 103 {
			k.Err = fmt.Errorf("removed by site site-3: %w", node.ErrOutputGone)
		}
		return k
	}
	asked.mayHave = []node.ElsewhereError{atOther, atGone}
	s := serve(t, asked, Config{})
	for query, want := range map[string]string{
		"all=true":                       "0 100.1 of site-1|1 101.1 of site-2|2 102.2 of site-2|3 output-gone",
		"all=true&tail=1":                "0 100.1 of site-1|1 101.1 of site-2|2 102.2 of site-2|3 output-gone",
		"all=true&follow=true":           "0 100.1 of site-1|1 101.1 of site-2|2 102.2 of site-2|3 output-gone",
		"state=succeeded&tail=2":         "0 100.1 of site-1|1 101.1 of site-2|2 102.2 of site-2|3 output-gone",
		"tasks=1-2,4":                    "1 101.1 of site-2|2 102.2 of site-2|4 not-found",
		"tasks=5":                        "5 not-found",
		"state=cancelled&state=queued":   "",
		"state=failed":                   "",
		"tasks=0&stream=stdout":          "0 100.1 of site-1",
		"tasks=0-4&state=succeeded":      "0 100.1 of site-1|1 101.1 of site-2|2 102.2 of site-2|3 output-gone",
		"tasks=0&follow=true&tail=1":     "0 100.1 of site-1",
		"all=true&cursor=2&follow=false": "2 102.2 of site-2|3 output-gone",
	} {
		asked.surveyed, other.surveyed = 0, 0
		if strings.Contains(query, "follow=true") {
			asked.mu.Lock()
			delete(asked.tasks, 5)
			asked.jobs[0].Spec.Count = 5 // none that waits
			asked.mu.Unlock()
		} else {
			asked.jobs[0].Spec.Count = 6
		}
		w := ask(s, "GET", "/v1/jobs/site-1.1/logs?"+query, "", "")
		if got := outputsIn(t, w.Body); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if !strings.Contains(query, "follow=true") && (asked.surveyed > 1 || other.surveyed > 1) {
			t.Errorf("%s: %d and %d questions", query, asked.surveyed, other.surveyed)
		}
	}
}

// outputsIn reads lines of output: of each task its text, or its problem.
func outputsIn(t *testing.T, body io.Reader) string {
	t.Helper()
	text := map[uint32]string{}
	for dec := json.NewDecoder(body); ; {
		var line wire.Output
		err := dec.Decode(&line)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if line.Task == nil {
			continue
		}
		text[*line.Task] += strings.TrimSpace(line.Text)
		if line.Problem != nil {
			text[*line.Task] += strings.TrimPrefix(line.Problem.Type, wire.ProblemPrefix)
		}
	}
	var out []string
	for _, task := range slices.Sorted(maps.Keys(text)) {
		out = append(out, fmt.Sprint(task, " ", text[task]))
	}
	return strings.Join(out, "|")
}

// TestKeptIsAnsweredByTheAskedSite: the question between brokers is bounded, and says
// what has become of what is not there.
func TestKeptIsAnsweredByTheAskedSite(t *testing.T) {
	f := newFake("site-2")
	f.kept = func(position uint32) (k node.KeptOutput) {
		switch position {
		case 3:
			k.Attempt = 2
		case 4:
			k.Err = fmt.Errorf("removed: %w", node.ErrOutputGone)
		}
		return k
	}
	s := newServer(f)
	w := askAsPeer(s, http.MethodGet, "/v1/jobs/site-1.7/kept?tasks=3-5")
	var page wire.List[wire.Kept]
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Items) != 2 ||
		page.Items[0] != (wire.Kept{Task: 3, Attempt: 2}) ||
		page.Items[1].Task != 4 || page.Items[1].Problem == nil || !strings.Contains(page.Items[1].Problem.Type, "output-gone") {
		t.Errorf("%d %s, %v", w.Code, w.Body, err)
	}
	for _, query := range []string{"", "?tasks=0-1000", "?tasks=x"} {
		if w := askAsPeer(s, http.MethodGet, "/v1/jobs/site-1.7/kept"+query); w.Code != 400 {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	}
	if w := askAsPeer(s, http.MethodGet, "/v1/jobs/site-3.7/kept?tasks=3"); w.Code != 404 && w.Code != 403 {
		t.Errorf("of a third site's job: %d %s", w.Code, w.Body)
	}
}

// TestOutputsBesideASiteThatIsAway: of tasks that wait for another attempt the outputs are
// found at the sites that answer, and this broker's own are read, although some site is
// away. What was said of the first was said of all others, without a look.
func TestOutputsBesideASiteThatIsAway(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	other, atOther := member(t, "site-2", Config{})
	asked.jobs[0].Spec.Count = 5
	exit := 0
	waits := func(position, attempt uint32) node.Task {
		return node.Task{State: "queued", Attempt: attempt, Position: position}
	}
	asked.tasks = map[uint32]node.Task{
		0: waits(100, 1), 1: waits(101, 1), 2: waits(102, 2),
		3: {State: "succeeded", ExitCode: &exit, Unrecorded: true, Position: 103},
	}
	keeps(asked, map[uint32]uint32{103: 1})
	keeps(other, map[uint32]uint32{101: 1, 102: 1})
	asked.mayHave = []node.ElsewhereError{{Site: "site-3", Peer: nobody(t), Role: "executor"}, atOther}
	s := serve(t, asked, Config{})
	const want = "0 executor-unreachable|1 101.1 of site-2|2 executor-unreachable|3 103.1 of site-1"
	if got := outputsIn(t, ask(s, "GET", "/v1/jobs/site-1.1/logs?all=true", "", "").Body); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if asked.surveyed != 1 || other.surveyed != 1 {
		t.Errorf("%d and %d questions", asked.surveyed, other.surveyed)
	}
}

// TestUnreadableThereIsSaid: a site that has an output and cannot read it now is not one
// that cannot be reached.
func TestUnreadableThereIsSaid(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	other, atOther := member(t, "site-2", Config{})
	keeps(asked, nil)
	keeps(other, map[uint32]uint32{100: 1})
	other.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) {
		return nil, fmt.Errorf("its disk fails: %w", node.ErrOutputUnreadable)
	}
	asked.mayHave = []node.ElsewhereError{atOther}
	s := serve(t, asked, Config{})
	if w := ask(s, "GET", "/v1/jobs/site-1.1/logs", "", ""); w.Code != 503 || !strings.Contains(w.Body.String(), problem.OutputUnreadable) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

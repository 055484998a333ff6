package jobgraph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// world is a site's jobs from number 1 on: what each names, and in which state it is.
type world struct {
	after  map[uint64][]jobspec.Dependency
	state  map[uint64]string
	hidden map[uint64]bool
	gone   map[uint64]bool
	n      uint64
	asked  int
}

func id(num uint64) command.JobID { return command.JobID{Site: "site-1", Num: num} }

func newWorld(n uint64) *world {
	return &world{
		n: n, after: map[uint64][]jobspec.Dependency{}, state: map[uint64]string{}, hidden: map[uint64]bool{},
		gone: map[uint64]bool{},
	}
}

func (w *world) name(num uint64, when jobspec.When, others ...uint64) {
	for _, o := range others {
		w.after[num] = append(w.after[num], jobspec.Dependency{Job: id(o), When: when})
	}
}

// held reports whether a job waits: what it names has not all ended.
func (w *world) held(num uint64) bool {
	return slices.ContainsFunc(w.after[num], func(d jobspec.Dependency) bool { return w.state[d.Job.Num] == "" })
}

func (w *world) Job(_ context.Context, at command.JobID) (node.Job, error) {
	w.asked++
	switch {
	case w.hidden[at.Num]:
		return node.Job{}, fmt.Errorf("job %s: %w", at, node.ErrNotOwner)
	case at.Num > w.n || w.gone[at.Num]:
		return node.Job{}, fmt.Errorf("job %s: %w", at, node.ErrNotFound)
	}
	j := node.Job{ID: at, State: w.state[at.Num], Counts: map[string]uint32{}}
	j.Spec.After, j.Spec.Name = w.after[at.Num], fmt.Sprintf("job %d", at.Num)
	if j.State == "" {
		j.State = "running"
	}
	if w.held(at.Num) {
		j.State, j.Counts[node.Held] = "queued", 1
	}
	return j, nil
}

func (w *world) Dependencies(_ context.Context, at command.JobID, most int) (d node.Dependencies, err error) {
	w.asked++
	if w.held(at.Num) {
		for _, a := range w.after[at.Num] {
			d.On = append(d.On, node.Dependency{Job: a.Job, When: a.When, State: w.state[a.Job.Num]})
		}
	}
	for num := at.Num + 1; num <= w.n; num++ {
		i := slices.IndexFunc(w.after[num], func(a jobspec.Dependency) bool { return a.Job == at })
		if i < 0 {
			continue
		}
		list, all := &d.Waiting, &d.All
		if w.state[at.Num] != "" && !(w.held(num) && w.after[num][i].When == jobspec.WhenEach) {
			list, all = &d.Followed, &d.FollowedAll
		}
		if *all++; !w.hidden[num] && len(*list) < most {
			*list = append(*list, id(num))
		}
	}
	return d, nil
}

func find(t interface {
	Helper()
	Fatal(...any)
}, w *world, num uint64, b Bounds,
) Graph {
	t.Helper()
	g, err := Find(context.Background(), w, id(num), b)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFindKeepsItsBounds: of any jobs the graph has no more nodes than it may, each edge is one that a job names, leads
// forward and stands on its side, and what is not drawn is counted.
func TestFindKeepsItsBounds(t *testing.T) {
	whens := []jobspec.When{jobspec.WhenOK, jobspec.WhenAny, jobspec.WhenNotOK, jobspec.WhenEach}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(uint64(rapid.IntRange(1, 30).Draw(t, "jobs")))
		at := uint64(rapid.IntRange(1, int(w.n)).Draw(t, "at"))
		for num := uint64(2); num <= w.n; num++ {
			older := rapid.SliceOfNDistinct(rapid.Uint64Range(1, num-1), 0, 5, rapid.ID[uint64])
			for _, other := range older.Draw(t, "names") {
				w.name(num, rapid.SampledFrom(whens).Draw(t, "when"), other)
			}
			if !w.held(num) {
				w.state[num] = rapid.SampledFrom([]string{"", "succeeded", "failed"}).Draw(t, "state")
			}
			w.hidden[num] = num != at && rapid.IntRange(0, 9).Draw(t, "hidden") == 0
			w.gone[num] = num != at && w.state[num] != "" && rapid.Bool().Draw(t, "gone")
		}
		b := Bounds{
			Depth: rapid.IntRange(1, 8).Draw(t, "depth"), Nodes: rapid.IntRange(1, 20).Draw(t, "nodes"),
			Fan: rapid.IntRange(1, 8).Draw(t, "fan"),
		}
		g := find(t, w, at, b)
		if len(g.Nodes) > b.Nodes || g.Nodes[g.At].ID != id(at) || g.Nodes[g.At].Side != Itself {
			t.Fatalf("%d nodes; the job is at %d of %+v", len(g.Nodes), g.At, g.Nodes)
		}
		w.check(t, &g)
		if again := find(t, w, at, b); fmt.Sprint(again.Edges) != fmt.Sprint(g.Edges) {
			t.Fatalf("asked again: %v, not %v", again.Edges, g.Edges)
		}
	})
}

func (w *world) check(t *rapid.T, g *Graph) {
	in, waits := map[int]int{}, map[int]int{}
	for _, e := range g.Edges {
		from, to := &g.Nodes[e.From], &g.Nodes[e.To]
		if e.From >= e.To || !slices.Contains(w.after[to.ID.Num], jobspec.Dependency{Job: from.ID, When: e.When}) {
			t.Fatalf("edge %+v is none", e)
		}
		in[e.To]++
		waits[e.From]++
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Side != Side(cmp.Compare(i, g.At)) || w.hidden[n.ID.Num] {
			t.Fatalf("%+v stands at %d", n, i)
		}
		if all := len(w.after[n.ID.Num]); n.Job != nil && n.MoreBefore != all-in[i] {
			t.Fatalf("%s names %d, %d are drawn and %d more", n.ID, all, in[i], n.MoreBefore)
		}
		d, _ := w.Dependencies(context.Background(), n.ID, 0)
		if all := d.All + d.FollowedAll; n.MoreAfter != all-waits[i] {
			t.Fatalf("%d wait for %s, or have, %d are drawn and %d more", all, n.ID, waits[i], n.MoreAfter)
		}
	}
}

// TestLongChainsAndWideFans: a thousand jobs in a row, and ten thousand that wait for one, cost what is drawn of them.
func TestLongChainsAndWideFans(t *testing.T) {
	b := Bounds{Depth: 6, Nodes: 50, Fan: 12}
	chain := newWorld(1000)
	for num := uint64(2); num <= chain.n; num++ {
		chain.name(num, jobspec.WhenOK, num-1)
	}
	g := find(t, chain, 500, b)
	if len(g.Nodes) != 13 || g.Nodes[0].MoreBefore != 1 || g.Nodes[12].MoreAfter != 1 || len(g.Edges) != 12 {
		t.Errorf("of a chain: %+v", g)
	}
	fan := newWorld(10_001)
	for num := uint64(2); num <= fan.n; num++ {
		fan.name(num, jobspec.WhenAny, 1)
	}
	fan.asked = 0
	g = find(t, fan, 1, b)
	if len(g.Nodes) != 13 || g.Nodes[0].MoreAfter != 10_000-12 || g.Nodes[12].ID != id(13) || fan.asked != 2*13 {
		t.Errorf("of a fan: %d questions, %+v", fan.asked, g.Nodes)
	}
}

// TestOthersJobsAreCounted: what who asks may not see is no node, and is asked for once.
func TestOthersJobsAreCounted(t *testing.T) {
	w := newWorld(5)
	w.name(3, jobspec.WhenOK, 1, 2)
	w.name(4, jobspec.WhenOK, 3)
	w.name(5, jobspec.WhenOK, 3)
	w.hidden[1], w.hidden[4] = true, true
	g := find(t, w, 3, Bounds{Depth: 9, Nodes: 50, Fan: 9})
	if len(g.Nodes) != 3 || g.Nodes[1].MoreBefore != 1 || g.Nodes[1].MoreAfter != 1 {
		t.Errorf("%+v", g.Nodes)
	}
	if _, err := Find(t.Context(), w, id(4), Bounds{1, 9, 9}); !errors.Is(err, node.ErrNotOwner) {
		t.Errorf("another's own graph: %v", err)
	}
}

// TestEndedAndForgotten: a job that began names in its spec what it waited for; of what is no longer kept there is what
// was seen of its end.
func TestEndedAndForgotten(t *testing.T) {
	w := newWorld(4)
	w.name(2, jobspec.WhenAny, 1)
	w.name(4, jobspec.WhenOK, 2)
	w.name(4, jobspec.WhenAny, 3)
	w.state = map[uint64]string{1: "failed", 2: "", 3: "failed"}
	w.gone[1], w.gone[3] = true, true
	g := find(t, w, 4, Bounds{Depth: 9, Nodes: 50, Fan: 9})
	if len(g.Nodes) != 4 || len(g.Edges) != 3 {
		t.Fatalf("%+v", g)
	}
	first, third := &g.Nodes[0], &g.Nodes[2]
	if first.Job != nil || first.State != "" || !first.Ended() || third.State != "failed" {
		t.Errorf("%+v, %+v", first, third)
	}
	if n := &g.Nodes[3]; !n.Held() || n.Ended() || n.Name() != "job 4" {
		t.Errorf("%+v", n)
	}
	if g.Nodes[1].Held() || g.Nodes[0].Name() != "" {
		t.Errorf("%+v", g.Nodes)
	}
}

// TestFollowersOfWhatHasEnded: an ended job's graph has what began after it; what is no longer kept would stand there
// without an edge, and is counted. However much that is, it costs no more questions than the bounds say.
func TestFollowersOfWhatHasEnded(t *testing.T) {
	w := newWorld(5)
	w.name(2, jobspec.WhenOK, 1)
	w.name(3, jobspec.WhenAny, 1)
	w.name(4, jobspec.WhenAny, 2, 3)
	w.state = map[uint64]string{1: "succeeded", 2: "succeeded", 3: "failed"}
	w.gone[3] = true
	g := find(t, w, 1, Bounds{Depth: 9, Nodes: 50, Fan: 9})
	if len(g.Nodes) != 3 || len(g.Edges) != 2 || g.Nodes[0].MoreAfter != 1 || g.Nodes[2].MoreBefore != 1 {
		t.Errorf("%+v", g)
	}
	fan := newWorld(1001)
	fan.state[1] = "succeeded"
	for num := uint64(2); num <= fan.n; num++ {
		fan.name(num, jobspec.WhenOK, 1)
		fan.gone[num] = true
	}
	g = find(t, fan, 1, Bounds{Depth: 2, Nodes: 5, Fan: 100})
	if len(g.Nodes) != 1 || g.Nodes[0].MoreAfter != 1000 || fan.asked > 5*maxAsked+1 {
		t.Errorf("%d questions, %+v", fan.asked, g.Nodes)
	}
}

// TestFindAsksNoMoreOnceItIsLeft: a context that has ended ends it.
func TestFindAsksNoMoreOnceItIsLeft(t *testing.T) {
	w := newWorld(3)
	w.name(2, jobspec.WhenOK, 1)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := Find(ctx, w, id(2), Bounds{Depth: 9, Nodes: 50, Fan: 9}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

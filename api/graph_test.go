package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// chain has somebody submit jobs each of which waits for the one before, and returns their ids.
func (u *users) chain(who string, n int) (ids []command.JobID) {
	u.t.Helper()
	for range n {
		id, err := command.ParseJobID(u.submit(who).ID)
		if err != nil {
			u.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for i := 1; i < n; i++ {
		u.await(ids[i-1], ids[i], jobspec.WhenAny)
	}
	return ids
}

// await has one job wait for another.
func (u *users) await(first, then command.JobID, when jobspec.When) {
	u.fake.mu.Lock()
	defer u.fake.mu.Unlock()
	if u.fake.waits == nil {
		u.fake.waits = map[command.JobID]node.Dependencies{}
	}
	j := &u.fake.jobs[then.Num-1]
	j.Spec.After = append(j.Spec.After, jobspec.Dependency{Job: first, When: when})
	j.Counts = map[string]uint32{node.Held: 1}
	d := u.fake.waits[then]
	d.On = append(d.On, node.Dependency{Job: first, When: when})
	u.fake.waits[then] = d
	d = u.fake.waits[first]
	d.Waiting, d.All = append(d.Waiting, then), d.All+1
	u.fake.waits[first] = d
}

func (u *users) graph(who string, id command.JobID, query string) (g wire.JobGraph) {
	u.t.Helper()
	w := u.as(who, "GET", "/v1/jobs/"+id.String()+"/graph"+query, "")
	if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil || w.Code != 200 {
		u.t.Fatalf("%s: %d %s", who, w.Code, w.Body)
	}
	return g
}

// TestGraphOfJobs: each user is shown the graph of their own jobs, and how many others are in it; what is beyond its
// bounds is counted.
func TestGraphOfJobs(t *testing.T) {
	u := newUsers(t)
	mine := u.chain("alice", 5)
	his := u.chain("bob", 1)[0]
	u.await(mine[2], his, jobspec.WhenEach)
	g := u.graph("alice", mine[2], "")
	second := wire.GraphEdge{Job: mine[2].String(), After: mine[1].String(), When: "any"}
	if len(g.Nodes) != 5 || len(g.Edges) != 4 || g.Job != mine[2].String() || g.Edges[1] != second {
		t.Errorf("%+v", g)
	}
	n := g.Nodes[2]
	n.Name = ""
	own := wire.GraphNode{Job: mine[2].String(), State: "queued", Held: true, Side: "itself", MoreAfter: 1}
	if n != own || g.Nodes[0].Side != "before" || g.Nodes[4].Side != "after" {
		t.Errorf("%+v", g.Nodes)
	}
	if g = u.graph("operator", mine[2], ""); len(g.Nodes) != 6 || g.Nodes[2].MoreAfter != 0 {
		t.Errorf("the operator sees %+v", g.Nodes)
	}
	g = u.graph("alice", mine[2], "?depth=1")
	if len(g.Nodes) != 3 || g.Nodes[0].MoreBefore != 1 || g.Nodes[2].MoreAfter != 1 {
		t.Errorf("a step to each side: %+v", g.Nodes)
	}
	if g = u.graph("operator", mine[2], "?fan=1&limit=4"); len(g.Nodes) != 4 {
		t.Errorf("four of them: %+v", g.Nodes)
	}
	for _, query := range []string{
		"?depth=0", "?depth=101", "?limit=0", "?limit=201", "?fan=0", "?fan=101", "?depth=x", "?width=1",
	} {
		if w := u.as("alice", "GET", "/v1/jobs/"+mine[0].String()+"/graph"+query, ""); w.Code != 400 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := u.as("alice", "GET", "/v1/jobs/site-1.99/graph", ""); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := u.as("alice", "GET", "/jobs/"+mine[2].String(), "", "Accept", "text/html")
	page := w.Body.String()
	if w.Code != 200 || !strings.Contains(page, `id="g-`+mine[4].String()+`"`) || strings.Contains(page, his.String()) {
		t.Errorf("%d %s", w.Code, page)
	}
}

// TestGraphOfWhatHasEnded: the graph of a job that has ended, and its page, show who has waited for it, but no jobs of
// others.
func TestGraphOfWhatHasEnded(t *testing.T) {
	u := newUsers(t)
	mine, his := u.chain("alice", 2), u.chain("bob", 1)[0]
	u.fake.mu.Lock()
	followed := node.Dependencies{Followed: []command.JobID{his, mine[1]}, FollowedAll: 2}
	u.fake.waits = map[command.JobID]node.Dependencies{mine[0]: followed}
	u.fake.jobs[his.Num-1].Spec.After = []jobspec.Dependency{{Job: mine[0]}}
	u.fake.mu.Unlock()
	g := u.graph("alice", mine[0], "")
	if len(g.Nodes) != 2 || len(g.Edges) != 1 || g.Nodes[1].Side != "after" || g.Nodes[0].MoreAfter != 1 {
		t.Errorf("%+v", g)
	}
	if g = u.graph("operator", mine[0], ""); len(g.Nodes) != 3 || g.Nodes[0].MoreAfter != 0 {
		t.Errorf("the operator sees %+v", g)
	}
	page := u.as("alice", "GET", "/jobs/"+mine[0].String(), "", "Accept", "text/html").Body.String()
	if !strings.Contains(page, `id="g-`+mine[1].String()+`"`) || strings.Contains(page, his.String()) {
		t.Error(page)
	}
}

package query

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/mem"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/own"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
	"github.com/cloudshare/cloudshare/node/seal"
)

// newReader returns the reader of site a, whose core has jobs at home and on their way, and
// whose copy of the state has published ones.
func newReader(t *testing.T, home, pending, published []command.JobSpec) *Reader {
	t.Helper()
	j, err := record.OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	var writes []record.Write
	for i := range home {
		writes = append(writes, record.PutRecord(record.BucketHome, record.Number(home[i].Num), home[i]))
	}
	for jobs := range slices.Chunk(pending, 1000) {
		cmd := command.Command{ID: command.ID{Site: "a", Incarnation: 1, Seq: 1}, Body: &command.Submit{Jobs: jobs}}
		writes = append(writes, record.Put(record.BucketPublishing, record.Number(jobs[0].Num),
			command.Append(nil, cmd)))
	}
	if err = j.Commit(writes); err != nil {
		t.Fatal(err)
	}
	c := core.New(sealer, node.DefaultExposure())
	if err = c.Recover(j, nil, &core.Effects{}); err != nil {
		t.Fatal(err)
	}
	return New(Sources{
		Site: "a", Sealer: sealer, Replica: stateWith(t, published),
		Query: func(_ context.Context, f func(*core.Core)) error {
			f(c)
			return nil
		},
	})
}

// stateWith is a copy of a state in which site a has published jobs.
func stateWith(t *testing.T, published []command.JobSpec) *replica.Replica {
	t.Helper()
	state, _ := orderedState(t, published)
	return state
}

// orderedState is stateWith, and its log.
func orderedState(t *testing.T, published []command.JobSpec) (*replica.Replica, coord.Log) {
	t.Helper()
	state := replica.NewReplica()
	log, err := mem.New(func() int64 { return 1 }).Open("a", state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	for _, cmd := range []command.Command{
		{ID: command.ID{Site: "a"}, Body: &command.Genesis{Federation: [16]byte{9}, Params: command.DefaultParams()}},
		{ID: command.ID{Site: "a"}, Body: &command.Register{
			Node: [16]byte{1}, Boot: [16]byte{1}, HTTP: "h:1", Peer: "h:2",
			MaxVersion: fsm.Version,
		}},
		{ID: command.ID{Site: "a", Incarnation: 1, Seq: 1}, Body: &command.Submit{Jobs: published}},
	} {
		if results, err := log.Propose(t.Context(), cmd); err != nil || results[0].Code != command.OK {
			t.Fatalf("%T: %v, %v", cmd.Body, results, err)
		}
	}
	return state, log
}

// sealer is site a's.
var sealer = seal.New(seal.Secret{7}, seal.Whose{Federation: [16]byte{9}, Site: "a"})

// specOf is a job of one task.
func specOf(num uint64, name string) command.JobSpec {
	return command.JobSpec{
		Num: num, CreatedMs: int64(num), Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000},
		Payload: sealer.Seal([]byte("{}"), []byte(`{"name":"`+name+`"}`)),
	}
}

// A filter that matches next to nothing walks on in looks of a bounded size.
func TestAFilterThatMatchesLittle(t *testing.T) {
	const jobs = own.Steps*ownLooks + 10
	pending := make([]command.JobSpec, jobs)
	for i := range pending {
		pending[i] = specOf(uint64(i)+1, "x")
	}
	pending[4] = specOf(5, "rare")
	r := newReader(t, nil, pending, nil)
	q := node.JobQuery{Limit: 10, Name: "rare"}
	own, err := r.ownPage(t.Context(), q, cursor{})
	if err != nil || len(own.jobs) != 0 || own.rest == 0 {
		t.Fatalf("a page of %d jobs, the rest below %d, %v", len(own.jobs), own.rest, err)
	}
	page, err := r.Jobs(t.Context(), q) // passes over the empty page
	if err != nil || len(page.Items) != 1 || page.Items[0].ID.Num != 5 || page.Next != "" {
		t.Errorf("found %+v, %v", page, err)
	}
}

// A job whose publication this broker has not heard of yet stands in the list once; what is
// older on both sides is still found.
func TestListShowsAPublishedJobOnce(t *testing.T) {
	home, way := specOf(1, "x"), []command.JobSpec{specOf(2, "x"), specOf(3, "x"), specOf(4, "x")}
	r := newReader(t, []command.JobSpec{home}, way[1:], way)
	var got []string
	q := node.JobQuery{Limit: 2}
	for more := true; more; more = q.Cursor != "" {
		page, err := r.Jobs(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page.Items {
			got = append(got, j.ID.String())
		}
		q.Cursor = page.Next
	}
	if want := []string{"a.4", "a.3", "a.2", "a.1"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// Found by review: a job that is published while its name is looked for was listed twice.
func TestPublishedWhileNameIsLookedFor(t *testing.T) {
	state, log := orderedState(t, nil)
	r := New(Sources{Site: "a", Sealer: sealer, Replica: state})
	for num := uint64(1); num <= 20; num++ {
		name := "n" + strconv.FormatUint(num, 10)
		done := make(chan error)
		go func() {
			_, err := log.Propose(t.Context(), command.Command{
				ID:   command.ID{Site: "a", Incarnation: 1, Seq: num + 1},
				Body: &command.Submit{Jobs: []command.JobSpec{specOf(num, name)}},
			})
			done <- err
		}()
		own := ownPage{jobs: make([]listed, 20_000)} // so long that it is published meanwhile
		own.jobs[0].ID = command.JobID{Site: "a", Num: num}
		page, _ := r.namedPage(node.JobQuery{Limit: 10, Name: name}, fsm.JobFilter{}, cursor{}, &own)
		if n := len(page) + len(own.jobs) - 19_999; n != 1 {
			t.Fatalf("job %d is listed %d times", num, n)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// Found by review: where one of the lists was cut short, older jobs of the
// other one came before its next ones.
func TestMergedPagesAreNewestFirst(t *testing.T) {
	fed, own := []int{100, 90, 85, 40, 10}, []int{95, 30, 20, 5}
	part := func(times []int, before uint64, n int) (page []listed, rest uint64) {
		for _, at := range times {
			if before > 0 && uint64(at) >= before {
				continue
			}
			if len(page) == n {
				return page, page[n-1].place
			}
			page = append(page, listed{node.Job{SubmittedAt: time.Unix(int64(at), 0)}, uint64(at)})
		}
		return page, 0
	}
	for fedSize := 1; fedSize < 6; fedSize++ {
		for ownSize := 1; ownSize < 6; ownSize++ {
			var got []int64
			next := ""
			for pages := 0; pages == 0 || next != ""; pages++ {
				cur, err := parseCursor(next)
				if err != nil || pages > 20 {
					t.Fatalf("page %d after %q: %v", pages, next, err)
				}
				var theirs []listed
				var mine ownPage
				fedNext := uint64(0)
				if !cur.fedDone {
					theirs, fedNext = part(fed, cur.seq, fedSize)
				}
				if !cur.ownDone {
					mine.jobs, mine.rest = part(own, cur.num, ownSize)
				}
				page := merge(theirs, mine, fedNext, 3, cur)
				for _, j := range page.Items {
					got = append(got, j.SubmittedAt.Unix())
				}
				next = page.Next
			}
			if want := []int64{100, 95, 90, 85, 40, 30, 20, 10, 5}; !slices.Equal(got, want) {
				t.Errorf("by %d and %d: %v, want %v", fedSize, ownSize, got, want)
			}
		}
	}
}
